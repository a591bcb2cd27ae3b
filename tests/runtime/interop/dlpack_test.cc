// DLPack: what comes in and what is refused, what goes out, and how often deleters are called.
#include "heddle/runtime/interop/dlpack.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/operation/host_function.h"
#include "runtime/cuda/fake_driver_test.h"
#include "runtime/interop/dlpack_as_published.h"
#include "support/matchers.h"
#include "support/private_interp_test.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;

constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;

// A tensor of somebody else's, float32[2, 3] of a GPU unless it is changed.
struct Theirs {
  explicit Theirs(void* data, DLDevice device = {kDLCUDA, 0}) {
    tensor = {data, device, 2, {2, 32, 1}, extents, nullptr, 0};
  }
  Theirs(const Theirs&) = delete;
  Theirs& operator=(const Theirs&) = delete;
  // Managed; every deletion is counted.
  DLManagedTensorVersioned* versioned(uint64_t flags = 0, DLPackVersion version = {1, 1}) {
    return new DLManagedTensorVersioned{version, this,
                                        [](DLManagedTensorVersioned* self) {
                                          ++static_cast<Theirs*>(self->manager_ctx)->deletions;
                                          delete self;
                                        },
                                        flags, tensor};
  }
  DLManagedTensor* legacy() {
    return new DLManagedTensor{tensor, this, [](DLManagedTensor* self) {
                                 ++static_cast<Theirs*>(self->manager_ctx)->deletions;
                                 delete self;
                               }};
  }

  int64_t extents[6] = {2, 3, 1, 1, 1, 1};
  int64_t strides[6] = {};
  DLTensor tensor;
  int deletions = 0;
};

void* pointer_to(uint64_t address) { return reinterpret_cast<void*>(address); }

const auto add_one =
    define_kernel("add_one(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
      If(thread_idx.x < x.shape(1),
         [&] { y(block_idx.x, thread_idx.x) = x(block_idx.x, thread_idx.x) + 1.0f; });
    });

class DlpackTest : public PrivateInterpTest {
 protected:
  Status add(const TensorRef<const float, 2>& x, const TensorRef<float, 2>& y) const {
    return add_one.launch(stream_, {.grid = 2, .block = 32}, x, y);
  }
  DlpackLayout matrix() const { return {.dtype = DType::kF32, .extents = {2, 3}}; }
};

TEST_F(DlpackTest, WhatGoesOutComesInAndIsLaunchedOn) {
  Buffer x = device_.upload<float>({1, 2, 3, 4, 5, 6}).value();
  auto y = std::make_shared<Buffer>(zeros(6));
  const uint64_t address = x.address();
  DLManagedTensorVersioned* out = to_dlpack(std::move(x), matrix()).value();
  EXPECT_EQ(x.address(), 0u) << "the managed tensor has it";
  EXPECT_EQ(out->version.major, 1u);
  EXPECT_EQ(out->dl_tensor.device.device_type, kDLCPU) << "an interpreter's memory is the host's";
  EXPECT_EQ(out->dl_tensor.data, pointer_to(address));
  EXPECT_EQ(static_cast<const float*>(out->dl_tensor.data)[5], 6.0f);

  const DlpackTensor in = from_dlpack(device_, out).value();
  const DlpackTensor result = from_dlpack(device_, to_legacy_dlpack(y, matrix()).value()).value();
  EXPECT_THAT(in.extents(), ElementsAre(2, 3));
  EXPECT_THAT(in.strides(), ElementsAre(3, 1));
  ASSERT_THAT(add(in.as_tensor<const float, 2>().value(), result.as_tensor<float, 2>().value()),
              IsOk());
  EXPECT_THAT(y->download<float>(stream_).value(), ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST_F(DlpackTest, ABufferLivesUntilTheLastOwnerHasGone) {
  auto buffer = std::make_shared<Buffer>(zeros(6));
  const std::weak_ptr<Buffer> alive = buffer;
  DLManagedTensorVersioned* first = to_dlpack(buffer, matrix()).value();
  DLManagedTensor* second = to_legacy_dlpack(std::move(buffer), matrix()).value();
  first->deleter(first);
  EXPECT_FALSE(alive.expired());
  const uint64_t address = alive.lock()->address();
  {
    const DlpackTensor in = from_dlpack(device_, second).value();
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(device_.interp()->memory().find(address, 1), nullptr);
}

TEST_F(DlpackTest, StridesAndOffsetsLeadToTheElements) {
  const Buffer memory = device_.upload<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).value();
  Buffer y = zeros(6);
  Theirs theirs(pointer_to(memory.address()), {kDLCPU, 0});
  theirs.tensor.byte_offset = 36;
  theirs.tensor.strides = theirs.strides;
  theirs.strides[0] = -1, theirs.strides[1] = -3;
  const DlpackTensor in = borrow_dlpack(device_, &theirs.tensor).value();
  EXPECT_EQ(in.address(), memory.address() + 36);
  ASSERT_THAT(add(in.as_tensor<const float, 2>().value(), as_tensor<float>(y, {2, 3})), IsOk());
  EXPECT_THAT(y.download<float>(stream_).value(), ElementsAre(10, 7, 4, 9, 6, 3));
  // One byte before its first element is another allocation's.
  theirs.strides[1] = -5;
  EXPECT_THAT(borrow_dlpack(device_, &theirs.tensor), Fails(kInvalid, "interp did not allocate"));
}

TEST_F(DlpackTest, AnExportedViewHasItsStridesAndStartsAtItsElement) {
  auto buffer = std::make_shared<Buffer>(zeros(8));
  DlpackLayout layout{.dtype = DType::kF32, .extents = {3, 2}, .strides = {1, 4}, .byte_offset = 4};
  DLManagedTensorVersioned* out = to_dlpack(buffer, layout).value();
  EXPECT_EQ(out->dl_tensor.data, pointer_to(buffer->address() + 4));
  EXPECT_EQ(out->dl_tensor.byte_offset, 0u);
  EXPECT_THAT(std::vector<int64_t>(out->dl_tensor.strides, out->dl_tensor.strides + 2),
              ElementsAre(1, 4));
  EXPECT_THAT(std::vector<int64_t>(out->dl_tensor.shape, out->dl_tensor.shape + 2),
              ElementsAre(3, 2));
  out->deleter(out);

  const auto refused = [&](StatusCode code, const char* text) {
    EXPECT_THAT(to_dlpack(buffer, layout), Fails(code, text));
    EXPECT_THAT(to_legacy_dlpack(buffer, layout), Fails(code, text));
  };
  constexpr StatusCode kOut = StatusCode::kOutOfRange;
  layout.byte_offset = 8;
  refused(kOut,
          "a tensor f32[3, 2] with strides (1, 4) at byte 8 does not lie in a buffer of 32 bytes");
  layout.byte_offset = 6;
  refused(kInvalid, "is not aligned to its elements of 4 bytes");
  layout.byte_offset = ~size_t{3};
  refused(kOut, "does not lie in a buffer");
  layout.byte_offset = 4, layout.strides = {-1, 4};
  refused(kOut, "does not lie in a buffer");
  layout.strides = {1};
  refused(kInvalid, "2 extents and 1 strides");
  layout.strides = {}, layout.extents = {3, -1};
  refused(kInvalid, "has a negative extent");
  layout.extents = {int64_t{1} << 40, int64_t{1} << 40};
  refused(kOut, "does not lie in a buffer");
  layout = {};
  refused(kInvalid, "set .dtype");
  EXPECT_THAT(to_dlpack(std::make_shared<Buffer>(), matrix()),
              Fails(kInvalid, "belongs to no device"));
  EXPECT_THAT(to_dlpack(nullptr, matrix()), Fails(kInvalid, "no buffer"));
  DlpackLayout read_only = matrix();
  read_only.read_only = true;
  EXPECT_THAT(to_legacy_dlpack(buffer, read_only),
              Fails(kInvalid, "cannot say that a tensor is read-only"));
  Buffer mine = zeros(1);
  EXPECT_THAT(to_dlpack(std::move(mine), matrix()), Fails(kOut, "a buffer of 4 bytes"));
  EXPECT_EQ(mine.size_bytes(), 4u) << "an error leaves it";
}

TEST_F(DlpackTest, BytesThatNobodyWroteDoNotGoOut) {
  Buffer fresh = device_.allocate(24).value();
  EXPECT_THAT(to_dlpack(std::move(fresh), matrix()),
              Fails(StatusCode::kFailedPrecondition, "nobody has written 24 of the 24 bytes",
                    "Buffer::fill()"));
  DLManagedTensorVersioned* empty =
      to_dlpack(device_.allocate(1).value(), {.dtype = DType::kF32, .extents = {0, 3}}).value();
  EXPECT_EQ(empty->dl_tensor.data, nullptr);
  empty->deleter(empty);
  ASSERT_THAT(fresh.fill(stream_, 0), IsOk());
  DLManagedTensorVersioned* out = to_dlpack(std::move(fresh), matrix()).value();
  out->deleter(out);
}

TEST_F(DlpackTest, WhatHasGoneIsNotLaunchedOn) {
  const Buffer memory = zeros(6);
  Buffer y = zeros(6);
  Theirs theirs(pointer_to(memory.address()), {kDLCPU, 0});
  StatusOr<DlpackTensor> in = from_dlpack(device_, theirs.versioned());
  const TensorRef<const float, 2> x = in->as_tensor<const float, 2>().value();
  DlpackTensor moved = *std::move(in);
  ASSERT_THAT(add(x, as_tensor<float>(y, {2, 3})), IsOk());
  EXPECT_EQ(theirs.deletions, 0);
  EXPECT_THAT((in->as_tensor<float, 2>()),
              Fails(StatusCode::kFailedPrecondition, "a DlpackTensor"));
  moved = borrow_dlpack(device_, &theirs.tensor).value();
  EXPECT_EQ(theirs.deletions, 1);
  EXPECT_THAT(add(x, as_tensor<float>(y, {2, 3})), Fails(kInvalid, "that was freed"));

  // Nor on a device that it was not taken for.
  const Device other = Device::open_private_interp(InterpBackend::default_info());
  const Stream elsewhere = other.create_stream().value();
  Buffer z = other.upload<float>({0, 0, 0, 0, 0, 0}).value();
  EXPECT_THAT(
      add_one.launch(elsewhere, {.grid = 2, .block = 32}, moved.as_tensor<const float, 2>().value(),
                     as_tensor<float>(z, {2, 3})),
      Fails(kInvalid, "another device"));
}

TEST_F(DlpackTest, ParametersDecideWhatTheyTake) {
  Buffer memory = zeros(6);
  Theirs theirs(pointer_to(memory.address()), {kDLCPU, 0});
  const DlpackTensor in = from_dlpack(device_, theirs.versioned(/*flags=*/1)).value();
  EXPECT_TRUE(in.read_only());
  EXPECT_THAT((in.as_tensor<float, 2>()), Fails(kInvalid, "is read-only", "make them const"));
  EXPECT_THAT((in.as_tensor<const int, 2>()),
              Fails(kInvalid, "elements of f32, and the parameter takes i32"));
  EXPECT_THAT((in.as_tensor<const float, 1>()),
              Fails(kInvalid, "has 2 modes, and the parameter takes 1"));
  EXPECT_THAT((in.as_tensor<const tfloat32, 2>()), IsOk());

  const HostFunction function =
      host_function(+[](const Stream&, const TensorRef<const float, 2>&, const TensorRef<float, 2>&,
                        int) { return OkStatus(); });
  const Argument x = in.argument(function.parameters()[0]).value();
  EXPECT_EQ(x.bits, memory.address());
  EXPECT_EQ(x.end, memory.address() + 24);
  EXPECT_TRUE(x.sound);
  EXPECT_THAT(in.argument(function.parameters()[1]), Fails(kInvalid, "is read-only"));
  EXPECT_THAT(in.argument(function.parameters()[2]), Fails(kInvalid, "a number or a pointer"));
  EXPECT_EQ(in.shape().dtype, DType::kF32);
  EXPECT_THAT(in.shape().extents, ElementsAre(2, 3));

  // A kernel whose arguments are data.
  Buffer y = zeros(6);
  DLManagedTensorVersioned* out = to_dlpack(std::move(y), matrix()).value();
  const auto* values = static_cast<const float*>(out->dl_tensor.data);
  const DlpackTensor result = from_dlpack(device_, out).value();
  const auto params = add_one.source().params();
  EXPECT_THAT(in.argument(params[1]), Fails(kInvalid, "is read-only"));
  const Argument arguments[] = {in.argument(params[0]).value(), result.argument(params[1]).value()};
  ASSERT_THAT(launch(stream_, add_one.source(), {.grid = 2, .block = 32}, arguments), IsOk());
  EXPECT_THAT(std::vector<float>(values, values + 6), testing::Each(1.0f));
}

TEST_F(DlpackTest, EveryElementTypeGoesOutAndComesIn) {
  const Buffer memory = zeros(6);
  for (int i = 1; i < ir::kScalarCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    SCOPED_TRACE(name_of(dtype));
    auto buffer = std::make_shared<Buffer>(zeros(16));
    DLManagedTensor* out = to_legacy_dlpack(buffer, {.dtype = dtype, .extents = {3}}).value();
    EXPECT_EQ(out->dl_tensor.dtype.bits * out->dl_tensor.dtype.lanes, ir::info(dtype).bits);
    EXPECT_EQ(from_dlpack(device_, out)->dtype(), dtype == DType::kTF32 ? DType::kF32 : dtype);
  }
  // By the numbers of dlpack.h.
  const std::pair<DLDataType, DType> known[] = {
      {{0, 64, 1}, DType::kI64},  {{1, 8, 1}, DType::kU8},    {{2, 16, 1}, DType::kF16},
      {{4, 16, 1}, DType::kBF16}, {{6, 8, 1}, DType::kBool},  {{10, 8, 1}, DType::kE4M3},
      {{12, 8, 1}, DType::kE5M2}, {{14, 8, 1}, DType::kE8M0}, {{17, 4, 2}, DType::kE2M1X2}};
  Theirs theirs(pointer_to(memory.address()), {kDLCPU, 0});
  theirs.extents[1] = 1;
  for (const auto& [type, dtype] : known) {
    theirs.tensor.dtype = type;
    EXPECT_EQ(borrow_dlpack(device_, &theirs.tensor)->dtype(), dtype);
  }
  const std::pair<DLDataType, const char*> unknown[] = {
      {{2, 32, 4},
       "elements of float32 x 4, vectors, and Heddle's elements are numbers; fix: give 4 lanes as "
       "the last mode"},
      {{17, 4, 1}, "elements of float4_e2m1fn, of 4 bits, and Heddle's elements are whole bytes"},
      {{5, 64, 1}, "elements of complex64, and Heddle has no complex numbers"},
      {{13, 8, 1},
       "elements of float8_e5m2fnuz, which is none of Heddle's types; fix: convert it to one of "
       "bool, i8"},
      {{2, 128, 1}, "float128, which is none"},
      {{99, 8, 1}, "type code 99, which is none"}};
  for (const auto& [type, text] : unknown) {
    theirs.tensor.dtype = type;
    EXPECT_THAT(borrow_dlpack(device_, &theirs.tensor), Fails(kInvalid, text));
  }
  theirs.tensor.dtype = {17, 4, 2};
  EXPECT_THAT(from_dlpack(device_, theirs.versioned(/*flags=*/4)), Fails(kInvalid, "whole bytes"));
}

TEST_F(DlpackTest, ADryRunHasNoMemory) {
  const Device dry =
      open_dry_run(InterpBackend::default_info(), [](const DryLaunch&) { return OkStatus(); });
  Theirs theirs(pointer_to(0x7000), {kDLCUDAHost, 0});
  EXPECT_THAT(borrow_dlpack(dry, &theirs.tensor), Fails(kInvalid, "kDLCUDAHost 0, which "));
  EXPECT_THAT(to_dlpack(dry.allocate(24).value(), matrix()),
              Fails(kInvalid, "has no memory to share"));
}

class DlpackOnGpuTest : public cuda::FakeDriverTest {
 protected:
  // What from_dlpack() and borrow_dlpack() say of it; each owned one is deleted once.
  Status taken(Theirs&& theirs) {
    theirs.deletions = 0;
    const Device device = Device::open("cuda:0").value();
    const Status status = from_dlpack(device, theirs.versioned()).status();
    EXPECT_EQ(theirs.deletions, 1);
    EXPECT_EQ(from_dlpack(device, theirs.legacy()).status(), status);
    EXPECT_EQ(theirs.deletions, 2);
    EXPECT_EQ(borrow_dlpack(device, &theirs.tensor).status(), status);
    EXPECT_EQ(theirs.deletions, 2);
    return status;
  }
  Theirs good(DLDevice device = {kDLCUDA, 0}) { return Theirs(pointer_to(0x7000), device); }
};

TEST_F(DlpackOnGpuTest, MemoryThatAGpuReaches) {
  for (const DLDevice memory : {DLDevice{kDLCUDA, 0}, {kDLCUDAHost, 0}, {kDLCUDAManaged, 0}}) {
    EXPECT_THAT(taken(good(memory)), IsOk());
  }
  EXPECT_THAT(taken(good({kDLCUDA, 1})),
              Fails(kInvalid,
                    "is in memory of kDLCUDA 1, which cuda:0 does not reach; fix: copy it to "
                    "cuda:0, or launch on cuda:1"));
  EXPECT_THAT(
      taken(good({kDLCPU, 0})),
      Fails(kInvalid,
            "kDLCPU 0, which cuda:0 does not reach; fix: copy it to cuda:0, by Device::upload()"));
  EXPECT_THAT(taken(good({kDLROCM, 2})), Fails(kInvalid, "kDLROCM 2, which cuda:0 does not reach"));
  EXPECT_THAT(taken(good({static_cast<DLDeviceType>(77), 0})), Fails(kInvalid, "device type 77 0"));
  const Device interp = Device::open("interp").value();
  Theirs theirs = good();
  EXPECT_THAT(borrow_dlpack(interp, &theirs.tensor),
              Fails(kInvalid,
                    "kDLCUDA 0, which interp does not reach; fix: copy it to interp, through the "
                    "host, or launch on cuda:0"));
  float host[6] = {};
  Theirs on_host(host, {kDLCPU, 0});
  EXPECT_THAT(borrow_dlpack(interp, &on_host.tensor),
              Fails(kInvalid, "interp did not allocate", "Device::upload()"));
}

TEST_F(DlpackOnGpuTest, ShapesAndAddresses) {
  // One in which a member is another.
  const auto with = [&](auto member, auto value) {
    Theirs theirs = good();
    theirs.tensor.*member = value;
    return taken(std::move(theirs));
  };
  EXPECT_THAT(with(&DLTensor::ndim, 6),
              Fails(kInvalid, "has 6 modes, and Heddle's tensors have 5 at most; fix: reshape it"));
  EXPECT_THAT(with(&DLTensor::ndim, -1), Fails(kInvalid, "has -1 modes"));
  EXPECT_THAT(with(&DLTensor::shape, nullptr), Fails(kInvalid, "its shape is null"));
  EXPECT_THAT(with(&DLTensor::data, nullptr),
              Fails(kInvalid, "has elements, 2 x 3, and its data is null"));
  EXPECT_THAT(with(&DLTensor::byte_offset, 6),
              Fails(kInvalid,
                    "starts at 0x7006, byte_offset 6 included, and its elements of "
                    "4 bytes need a multiple of 4"));
  EXPECT_THAT(with(&DLTensor::byte_offset, UINT64_MAX), Fails(kInvalid, "leads out of memory"));
}

TEST_F(DlpackOnGpuTest, FewElementsAndNone) {
  const Device device = Device::open("cuda:0").value();
  int64_t extents[] = {0, 3}, strides[] = {INT64_MAX, 1};
  DLTensor tensor{nullptr, {kDLCUDA, 0}, 2, {2, 32, 1}, extents, strides, 0};
  EXPECT_EQ(borrow_dlpack(device, &tensor)->address(), 0u);
  extents[0] = -1;
  EXPECT_THAT(borrow_dlpack(device, &tensor), Fails(kInvalid, "has extent -1 in mode 0"));
  tensor.data = pointer_to(0x7000);
  extents[0] = 3;
  EXPECT_THAT(borrow_dlpack(device, &tensor), Fails(kInvalid, "reaches over more than 64 bits"));
  tensor.ndim = 0, tensor.shape = nullptr, tensor.strides = nullptr;
  const DlpackTensor one = borrow_dlpack(device, &tensor).value();
  EXPECT_THAT(one.extents(), ElementsAre(1));
  EXPECT_EQ((one.as_tensor<float, 1>()->data), pointer_to(0x7000));
  EXPECT_THAT(borrow_dlpack(device, static_cast<DLTensor*>(nullptr)),
              Fails(kInvalid, "is a null pointer"));
  EXPECT_THAT(from_dlpack(device, static_cast<DLManagedTensor*>(nullptr)),
              Fails(kInvalid, "is a null pointer"));
}

TEST_F(DlpackOnGpuTest, OfAnotherVersionTheDeleterAloneIsTouched) {
  const Device device = Device::open("cuda:0").value();
  Theirs theirs = good();
  for (const uint32_t major : {0u, 2u}) {
    EXPECT_THAT(from_dlpack(device, theirs.versioned(0, {major, 5})),
                Fails(kInvalid,
                      "of DLPack, and Heddle reads version 1; fix: ask its library for that, by "
                      "max_version"));
  }
  EXPECT_EQ(theirs.deletions, 2);
  EXPECT_THAT(from_dlpack(device, theirs.versioned(0, {1, 99})), IsOk());
  EXPECT_EQ(theirs.deletions, 3);
  // One without a deleter.
  DLManagedTensorVersioned alone{{1, 0}, nullptr, nullptr, 0, theirs.tensor};
  EXPECT_THAT(from_dlpack(device, &alone), IsOk());
}

TEST_F(DlpackOnGpuTest, BuffersGoOutWithTheirDevice) {
  fake_->set_device_count(2);
  Device device = Device::open("cuda:1").value();
  Buffer buffer = device.allocate(24).value();
  DlpackLayout layout{.dtype = DType::kF32, .extents = {2, 3}, .read_only = true};
  DLManagedTensorVersioned* out = to_dlpack(std::move(buffer), layout).value();
  EXPECT_EQ(out->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(out->dl_tensor.device.device_id, 1);
  EXPECT_EQ(out->flags, 1u);
  EXPECT_EQ(fake_->live().allocations, 1);
  out->deleter(out);
  EXPECT_EQ(fake_->live().allocations, 0);
  out = to_dlpack(device.allocate(0).value(), {.dtype = DType::kF32, .extents = {0, 3}}).value();
  EXPECT_EQ(out->dl_tensor.data, nullptr);
  out->deleter(out);
}

TEST_F(DlpackOnGpuTest, StreamsWait) {
  const Device device = Device::open("cuda:0").value();
  const Stream ours = device.create_stream().value(), theirs = device.create_stream().value();
  const auto number = [](const Stream& stream) { return static_cast<int64_t>(stream.handle()); };
  // What the driver was told of events since the last time.
  const auto told = [&](const Status& status) {
    EXPECT_THAT(status, IsOk());
    std::string text;
    for (const std::string& call : fake_->calls()) {
      if (call.find("cuEventRecord") == 0 || call.find("cuStreamWait") == 0) text += call + "; ";
    }
    fake_->reset();
    return text;
  };
  const auto after = [](int64_t earlier, int64_t later) {
    return absl::StrCat("cuEventRecord ", earlier, "; cuStreamWaitEvent ", later, "; ");
  };
  const int64_t a = number(ours), b = number(theirs);
  fake_->reset();
  EXPECT_EQ(told(wait_for_stream(ours, b)), after(b, a));
  EXPECT_EQ(told(let_stream_wait(b, ours)), after(a, b));
  for (const int64_t standing : {1, 2}) {  // CUDA's own handles
    EXPECT_EQ(told(wait_for_stream(ours, standing)), after(standing, a));
  }
  EXPECT_EQ(told(wait_for_stream(ours, -1)), "");
  EXPECT_EQ(told(let_stream_wait(a, ours)), "") << "a stream is in order";
  EXPECT_THAT(wait_for_stream(ours, 0),
              Fails(kInvalid, "0 is either of CUDA's default streams; fix: give 1"));
  Stream moved = device.create_stream().value();
  const Stream kept = std::move(moved);
  for (const Status& status : {wait_for_stream(moved, 1), let_stream_wait(1, moved)}) {
    EXPECT_THAT(status, Fails(StatusCode::kFailedPrecondition, "a Stream"));
  }
  EXPECT_THAT(let_stream_wait(-2, ours), Fails(kInvalid, "-2 is no stream"));
}

// As README.md shows it.
TEST(Dlpack, TheLinesOfTheReadme) {
  const auto row_sum =
      define_kernel("row_sum(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
        const Int row = block_idx.x;
        If(thread_idx.x == 0, [&] { y(row) = x(row, 0) + x(row, 1) + x(row, 2); });
      });
  const Device device = Device::open_private_interp(InterpBackend::default_info());
  const Stream stream = device.create_stream().value();
  Buffer in = device.upload<float>({1, 2, 3, 4, 5, 6}).value();
  Buffer out = device.allocate(2 * sizeof(float)).value();
  DLManagedTensorVersioned* const managed =
      to_dlpack(std::move(in), {.dtype = DType::kF32, .extents = {2, 3}}).value();
  // <page>
  // Checks device, type and layout; calls the deleter once, also after an error.
  StatusOr<DlpackTensor> x = from_dlpack(device, managed);
  Status status =
      row_sum.launch(stream, {.grid = 2, .block = 128}, x->as_tensor<const float, 2>().value(),
                     as_tensor<float>(out, {2}));
  StatusOr<DLManagedTensorVersioned*> y =
      to_dlpack(std::move(out), {.dtype = DType::kF32, .extents = {2}});
  // </page>
  ASSERT_TRUE(status.ok()) << status;
  const auto* const sums = static_cast<const float*>((*y)->dl_tensor.data);
  EXPECT_EQ(sums[0], 6);
  EXPECT_EQ(sums[1], 15);
  (*y)->deleter(*y);
}

}  // namespace
}  // namespace heddle::runtime
