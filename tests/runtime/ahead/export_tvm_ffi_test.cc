// Exported functions in the form of TVM-FFI, called as TVM-FFI calls them: on structures made by hand, with a stand-in for libtvm_ffi
// that is linked into the library, and on the stand-in for libcuda.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/ahead/export.h"
#include "runtime/ahead/exported_library.h"
#include "runtime/cuda/fake_driver_test.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

// DLTensor, TVMFFIObject with a tensor behind it, and TVMFFIAny.
struct Tensor {
  void* data = nullptr;
  int32_t device_type = 2, device_id = 0, rank = 0;
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 1;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;
  uint64_t byte_offset = 0;
};
struct Object {
  uint64_t references = 1;
  int32_t type = 70;
  uint32_t padding = 0;
  void* deleter = nullptr;
  Tensor tensor = {};
};
struct Any {
  int32_t type = 0;
  uint32_t padding = 0;
  uint64_t value = 0;
};
enum AnyType : int32_t {
  kNone = 0,
  kInt = 1,
  kFloat = 3,
  kTensorPointer = 7,
  kMoved = 10,
  kTensor = 70
};

uint64_t bits_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// What the stand-in was asked, and how it answers.
struct TvmFfi {
  std::string kind, text;  // of the error that was raised
  bool has_allocator = true, out_of_memory = false;
  std::vector<int64_t> allocated;  // bytes
  int released = 0;
  Object scratch = {};  // what is allocated
};
TvmFfi tvm_ffi;

void set_raised(const char* kind, const char* text) {
  tvm_ffi.kind = kind;
  tvm_ffi.text = text;
}
void* get_stream(int32_t type, int32_t id) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(0x5000 + 0x100 * type + id));
}
void* get_allocator() { return tvm_ffi.has_allocator ? &tvm_ffi : nullptr; }
int allocate(const Tensor* like, void** made) {
  EXPECT_EQ(like->rank, 1);
  EXPECT_THAT((std::vector<int>{like->code, like->bits, like->lanes, like->device_type}),
              ElementsAre(1, 8, 1, 2));
  if (tvm_ffi.out_of_memory) {
    set_raised("OutOfMemoryError", "the allocator's text");
    return -1;
  }
  tvm_ffi.allocated.push_back(like->shape[0]);
  *made = &tvm_ffi.scratch;
  return 0;
}
int release(void* object) {
  EXPECT_EQ(object, &tvm_ffi.scratch);
  ++tvm_ffi.released;
  return 0;
}

constexpr char kStandIn[] = R"cpp(
  extern "C" {
  void (*set_raised)(const char*, const char*);
  void* (*get_stream)(int, int);
  void* (*get_allocator)();
  int (*allocate)(const void*, void**);
  int (*release)(void*);
  void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* text) { set_raised(kind, text); }
  void* TVMFFIEnvGetStream(int type, int id) { return get_stream(type, id); }
  void* TVMFFIEnvGetDLPackManagedTensorAllocator() { return get_allocator(); }
  int TVMFFIEnvTensorAlloc(const void* like, void** made) { return allocate(like, made); }
  int TVMFFIObjectDecRef(void* object) { return release(object); }
  }
)cpp";

// A plan for x: f32[rows, columns], y: e4m3[rows, 2], which is written, and ends: i64[rows + 1], which TVM-FFI passes before y. It
// launches a kernel, or where there is a workspace, copies it to y.
ExportedPlan plan_of(int64_t rows, int64_t columns, int64_t workspace_bytes = 0) {
  ExportedPlan plan{ir::find_target("sm_90"), {{"rows", rows}, {"columns", columns}}, {}};
  plan.call.tensors = {{.name = "x",
                        .shape = {ir::Scalar::kF32, {rows, columns}},
                        .bytes = 4 * rows * columns,
                        .alignment = 16,
                        .dimensions = {{"rows", 0}, {"columns", 0}}},
                       {.name = "y",
                        .shape = {ir::Scalar::kE4M3, {rows, 2}},
                        .written = true,
                        .bytes = 2 * rows,
                        .alignment = 16,
                        .dimensions = {{"rows", 0}, {"", 2}}},
                       {.name = "ends",
                        .shape = {ir::Scalar::kI64, {rows + 1}},
                        .bytes = 8 * (rows + 1),
                        .alignment = 16,
                        .dimensions = {{"rows", 1}}}};
  plan.call.workspace_bytes = workspace_bytes;
  if (workspace_bytes > 0) {
    plan.call.steps = {RecordedFill{.to = {-1, 256}, .value = 7, .count = 2},
                       RecordedCopy{.to = {1, 1}, .from = {-1, 256}, .bytes = 2}};
  } else {
    auto kernel = std::make_shared<Compilation>(ir::TraceResult{ir::Kernel("row_sum")});
    kernel->assembly.cubin = "code";
    kernel->ptx.entry = "row_sum";
    RecordedLaunch launch{.kernel = std::move(kernel), .shape = {.grid = 1, .block = 32}};
    launch.block.resize(24);
    for (int i = 0; i < 3; ++i) launch.addresses.push_back({8 * i, {i, 0}});
    plan.call.steps = {std::move(launch)};
  }
  return plan;
}

const std::vector<std::string> kSizes = {"columns", "rows"};

ExportedSources sources_of(const std::vector<ExportedPlan>& plans) {
  return export_calls("built", kSizes, plans, {.tvm_ffi = true}).value();
}

// Arguments of a call: tensors of a plan, as objects, and a workspace that is not passed.
struct Arguments {
  explicit Arguments(uint8_t* memory, int64_t rows = 3, int64_t columns = 5)
      : shapes{{rows, columns}, {rows + 1}, {rows, 2}, {0}},
        strides{{columns, 1}, {1}, {2, 1}, {1}} {
    constexpr uint8_t kCodes[] = {2, 0, 10, 1}, kBits[] = {32, 64, 8, 8};
    for (size_t i = 0; i < 4; ++i) {
      Tensor& t = objects[i].tensor;
      t.data = memory + 1024 * i;
      t.rank = static_cast<int32_t>(shapes[i].size());
      t.code = kCodes[i];
      t.bits = kBits[i];
      t.shape = shapes[i].data();
      t.strides = strides[i].data();
      if (i < 3) passed.push_back({kTensor, 0, bits_of(&objects[i])});
    }
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  Tensor& tensor(size_t i) { return objects[i].tensor; }
  void reshape(size_t i, std::vector<int64_t> shape) {
    shapes[i] = std::move(shape);
    tensor(i).shape = shapes[i].data();
    tensor(i).rank = static_cast<int32_t>(shapes[i].size());
    tensor(i).strides = nullptr;
  }
  void pass_workspace(uint8_t* data, int64_t bytes) {
    reshape(3, {bytes});
    tensor(3).data = data;
    passed.push_back({kTensor, 0, bits_of(&objects[3])});
  }

  std::vector<int64_t> shapes[4], strides[4];
  Object objects[4];
  std::vector<Any> passed;
};

class ExportedTvmFfi : public cuda::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    leaks_expected_ = true;  // libraries keep what they have loaded
    HEDDLE_NEEDS_C_COMPILERS();
    device_ = Device::open("cuda:0").value();
    memory_ = device_->allocate(16384).value();
    std::memset(at(0), 0, memory_->size_bytes());
    fake_->set_current_context(context(0));
    tvm_ffi = {};
  }
  void TearDown() override {
    fake_->set_current_context(nullptr);
    memory_.reset();
    device_.reset();
    FakeDriverTest::TearDown();
  }

  void build(const std::vector<ExportedPlan>& plans) {
    library_.emplace("built", sources_of(plans), kStandIn);
    const std::pair<const char*, const void*> hooks[] = {
        {"set_raised", reinterpret_cast<const void*>(set_raised)},
        {"get_stream", reinterpret_cast<const void*>(get_stream)},
        {"get_allocator", reinterpret_cast<const void*>(get_allocator)},
        {"allocate", reinterpret_cast<const void*>(allocate)},
        {"release", reinterpret_cast<const void*>(release)}};
    for (const auto& [name, hook] : hooks) {
      *static_cast<const void**>(library_->symbol(name)) = hook;
    }
  }

  static cuda::ContextHandle context(uintptr_t device) {
    return reinterpret_cast<cuda::ContextHandle>(0xC000 + device);
  }
  uint8_t* at(uint64_t offset) const {
    return reinterpret_cast<uint8_t*>(memory_->address() + offset);
  }

  int call(const std::string& function, const std::vector<Any>& passed, Any& result) {
    using Function = int (*)(void*, const Any*, int32_t, Any*);
    tvm_ffi.kind = tvm_ffi.text = "";
    return reinterpret_cast<Function>(library_->symbol("__tvm_ffi_" + function))(
        nullptr, passed.data(), static_cast<int32_t>(passed.size()), &result);
  }
  // "" where the call succeeds, else "Kind: text".
  std::string call(const Arguments& arguments) {
    Any result = {.type = 3, .value = 9};
    const int failed = call("built", arguments.passed, result);
    EXPECT_TRUE(failed != 0 || result.type == kNone) << result.type;
    EXPECT_EQ(failed, tvm_ffi.kind.empty() ? 0 : -1);
    return failed == 0 ? "" : tvm_ffi.kind + ": " + tvm_ffi.text;
  }
  // How often the driver was asked for it.
  int asked(const std::string& what) const {
    const std::vector<std::string> calls = fake_->calls();
    return static_cast<int>(std::count_if(calls.begin(), calls.end(), [&](const std::string& one) {
      return one.rfind(what, 0) == 0;
    }));
  }

  std::optional<Device> device_;
  std::optional<Buffer> memory_;
  std::optional<ExportedLibrary> library_;
};

TEST_F(ExportedTvmFfi, EnqueuesACallOnTheCurrentStreamOfTheTensorsDevice) {
  build({plan_of(3, 5), plan_of(1, 5)});
  Arguments arguments(at(0));
  arguments.passed[1] = {kTensorPointer, 0, bits_of(&arguments.tensor(1))};
  Object* const moved = &arguments.objects[2];
  arguments.passed[2] = {kMoved, 0, bits_of(&moved)};
  arguments.tensor(0).byte_offset = 32;
  arguments.tensor(2).strides = nullptr;
  const int pushed_before = asked("cuCtxPushCurrent");
  ASSERT_EQ(call(arguments), "");
  ASSERT_EQ(fake_->launches().size(), 1u);
  EXPECT_EQ(bits_of(fake_->launches()[0].config.stream), 0x5200u);
  uint64_t addresses[3] = {};
  ASSERT_EQ(fake_->launches()[0].parameters.size(), sizeof addresses);
  std::memcpy(addresses, fake_->launches()[0].parameters.data(), sizeof addresses);
  EXPECT_THAT(addresses, ElementsAre(bits_of(at(32)), bits_of(at(2048)), bits_of(at(1024))));
  EXPECT_EQ(asked("cuCtxPushCurrent"), pushed_before) << "the device's context is current";

  // Where there is one element, its stride says nothing.
  Arguments row(at(0), 1);
  row.strides[0] = {77, 1};
  EXPECT_EQ(call(row), "");

  // Another device's tensors, and a thread without a context.
  const Device second = Device::open("cuda:1").value();
  for (const int32_t device : {1, 0}) {
    fake_->set_current_context(device == 1 ? context(0) : nullptr);
    Arguments elsewhere(at(0));
    for (size_t i = 0; i < 3; ++i) elsewhere.tensor(i).device_id = device;
    const int pushed = asked("cuCtxPushCurrent"), released = asked("cuDevicePrimaryCtxRelease");
    const int loaded = asked("cuModuleLoadDataEx");
    EXPECT_EQ(call(elsewhere), "");
    EXPECT_EQ(bits_of(fake_->launches().back().config.stream), 0x5200u + device);
    EXPECT_EQ(asked("cuModuleLoadDataEx") - loaded, device) << "once in each context";
    EXPECT_EQ(fake_->current_context(), device == 1 ? context(0) : nullptr);
    elsewhere.tensor(0).data = at(4);
    EXPECT_THAT(call(elsewhere), StartsWith("ValueError: built: x lies at"));
    EXPECT_EQ(fake_->current_context(), device == 1 ? context(0) : nullptr);
    EXPECT_EQ(asked("cuCtxPushCurrent") - pushed, 2);
    EXPECT_EQ(asked("cuDevicePrimaryCtxRelease") - released, 2);
  }
}

TEST_F(ExportedTvmFfi, RefusesWhatIsNotAsItWasBuilt) {
  build({plan_of(3, 5)});
  struct Refusal {
    std::function<void(Arguments&)> change;
    std::string error;
  };
  const int64_t many[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Refusal refusals[] = {
      {[](Arguments& a) { a.passed.pop_back(); },
       "TypeError: built: 2 arguments are given, and 3 are expected: x: float32[rows, columns], "
       "ends: "
       "int64[rows + 1], y: float8_e4m3fn[rows, 2]; or one more, a workspace: uint8[bytes]"},
      {[](Arguments& a) { a.passed.resize(5); }, "TypeError: built: 5 arguments are given.*"},
      {[](Arguments& a) {
         a.passed[1] = {kFloat, 0, 0};
       },
       "TypeError: built: argument 2, ends, is a float, and a tensor is expected: int64[rows + 1]"},
      {[](Arguments& a) {
         a.passed[0] = {kNone, 0, 0};
       },
       "TypeError: built: argument 1, x, is None, .*"},
      {[](Arguments& a) { a.passed[0].type = 130; },
       "TypeError: built: argument 1, x, is an object of type 130, .*"},
      {[](Arguments& a) {
         a.passed[0] = {kTensorPointer, 0, 0};
       },
       "TypeError: built: argument 1, x, is a DLTensor pointer that is NULL, .*"},
      {[](Arguments& a) {
         a.objects[0].type = 71;
         static Object* moved;
         moved = &a.objects[0];
         a.passed[0] = {kMoved, 0, bits_of(&moved)};
       },
       "TypeError: built: argument 1, x, is another object that is moved, .*"},
      {[](Arguments& a) { a.tensor(0).device_type = 1; },
       "ValueError: built: argument 1, x, is on cpu, and a tensor on a CUDA device is expected"},
      {[](Arguments& a) { a.tensor(2).device_type = 99; },
       "ValueError: built: argument 3, y, is on a device of type 99, .*"},
      {[](Arguments& a) { a.tensor(1).device_id = 1; },
       "ValueError: built: argument 2, ends, is on cuda:1, and the first one on cuda:0: all have "
       "to "
       "be on one device"},
      {[](Arguments& a) { a.tensor(2).code = 12; },
       "TypeError: built: argument 3, y, has elements of float8_e5m2, and float8_e4m3fn is "
       "expected"},
      {[](Arguments& a) { a.tensor(1).bits = 32; },
       "TypeError: built: argument 2, ends, has elements of int32, and int64 is expected"},
      {[](Arguments& a) { a.tensor(0).lanes = 4; },
       "TypeError: built: argument 1, x, has elements of float32x4, and float32 is expected"},
      {[](Arguments& a) { a.tensor(0).code = 77; },
       "TypeError: built: argument 1, x, has elements of type 77 of 32 bits, .*"},
      {[](Arguments& a) { a.tensor(0).shape = nullptr; },
       "ValueError: built: argument 1, x, has 2 dimensions and no shape"},
      {[](Arguments& a) { a.reshape(0, {15}); },
       "ValueError: built: argument 1, x, has the shape [15], and [rows, columns] is expected"},
      {[&](Arguments& a) {
         a.reshape(0, {many, many + 9});
       },
       "ValueError: built: argument 1, x, has the shape [1, 2, 3, 4, 5, 6, 7, 8, ...], .*"},
      {[](Arguments& a) { a.tensor(0).rank = 0; },
       "ValueError: built: argument 1, x, has the shape [], .*"},
      {[](Arguments& a) { a.reshape(1, {3}); },
       "ValueError: built: argument 2, ends, has the shape [3], and [rows + 1] is expected with "
       "rows=3 "
       "by argument 1"},
      {[](Arguments& a) {
         a.reshape(2, {3, 4});
       },
       "ValueError: built: argument 3, y, has the shape [3, 4], and [rows, 2] is expected"},
      {[](Arguments& a) {
         a.strides[0] = {1, 3};
       },
       "ValueError: built: argument 1, x, has the strides [1, 3], and [5, 1] is expected: "
       "row-major "
       "without gaps; fix: pass a contiguous tensor"},
      {[](Arguments& a) {
         a.strides[0] = {8, 1};
       },
       "ValueError: built: argument 1, x, has the strides [8, 1], .*"},
      // What the plain function says.
      {[](Arguments& a) {
         a.reshape(0, {4, 5});
         a.reshape(1, {5});
         a.reshape(2, {4, 2});
       },
       "ValueError: built: there is no code for columns=5, rows=4: it was built for columns=5, "
       "rows=3"},
      {[](Arguments& a) { a.tensor(0).byte_offset = 4; },
       "ValueError: built: x lies at .*, and has to lie at a multiple of 16 bytes"},
      {[](Arguments& a) {
         a.tensor(0).data = nullptr;
         a.tensor(0).byte_offset = 64;
       },
       "ValueError: built: x is NULL"},
      {[](Arguments& a) { a.tensor(2).data = a.tensor(0).data; },
       "ValueError: built: y shares memory with x, and the code is for tensors that do not"},
  };
  for (const Refusal& refusal : refusals) {
    Arguments arguments(at(0));
    refusal.change(arguments);
    std::string pattern;
    for (const char c : refusal.error) {
      if (c == '[' || c == ']' || c == '+') pattern += '\\';
      pattern += c;
    }
    EXPECT_THAT(call(arguments), MatchesRegex(pattern));
  }
  EXPECT_TRUE(fake_->launches().empty());

  fake_->fail("cuLaunchKernelEx", 555);
  EXPECT_EQ(call(Arguments(at(0))),
            "RuntimeError: built: cuLaunchKernelEx failed: CUDA_ERROR_FROM_THE_FUTURE (555)");
  fake_->fail("cuDeviceGet", 555);
  EXPECT_EQ(call(Arguments(at(0))),
            "RuntimeError: built: cuDeviceGet failed for cuda:0: CUDA_ERROR_FROM_THE_FUTURE (555)");
}

TEST_F(ExportedTvmFfi, TakesAWorkspaceOrAllocatesOne) {
  build({plan_of(3, 5, 512), plan_of(1, 5)});
  const auto bytes_for = [&](std::vector<Any> sizes) {
    Any result;
    if (call("built_workspace_bytes", sizes, result) != 0)
      return tvm_ffi.kind + ": " + tvm_ffi.text;
    EXPECT_EQ(result.type, kInt);
    return std::to_string(result.value);
  };
  EXPECT_EQ(bytes_for({{kInt, 0, 5}, {kInt, 0, 3}}), "768") << "256 more, for where it lies";
  EXPECT_EQ(bytes_for({{kInt, 0, 5}, {kInt, 0, 1}}), "0");
  EXPECT_EQ(
      bytes_for({{kInt, 0, 5}}),
      "TypeError: built: for the bytes of a workspace 1 argument is given, and 2 are expected: "
      "columns, rows");
  EXPECT_EQ(
      bytes_for({{kInt, 0, 5}, {kFloat, 0, 0}}),
      "TypeError: built: for the bytes of a workspace argument 2, rows, is a float, and an int "
      "is expected");

  const auto done = [&] {
    const bool copied = *at(2048 + 1) == 7 && *at(2048 + 2) == 7;
    std::memset(at(0), 0, memory_->size_bytes());
    return copied;
  };
  for (const int gap : {0, 1, 255}) {
    Arguments given(at(0));
    given.pass_workspace(at(8192 + gap), 768);
    EXPECT_EQ(call(given), "") << gap;
    EXPECT_EQ(*at(8192 + (gap > 0 ? 256 : 0) + 256), 7) << gap;
    EXPECT_TRUE(done());
  }
  EXPECT_TRUE(tvm_ffi.allocated.empty());
  const auto refused = [&](const std::function<void(Arguments&)>& change) {
    Arguments given(at(0));
    given.pass_workspace(at(8192), 768);
    change(given);
    return call(given);
  };
  EXPECT_EQ(refused([&](Arguments& a) {
              a.tensor(3).data = at(8193);
              a.shapes[3] = {766};
            }),
            "ValueError: built: argument 4, workspace, has 766 bytes, and 768 are needed: see "
            "built_workspace_bytes()");
  EXPECT_THAT(refused([&](Arguments& a) {
                a.tensor(3).data = at(8193);
                a.shapes[3] = {100};
              }),
              HasSubstr("has 100 bytes, and 768 are needed"));
  EXPECT_EQ(refused([](Arguments& a) { a.tensor(3).code = 0; }),
            "TypeError: built: argument 4, workspace, has elements of int8, and uint8 is expected");
  EXPECT_EQ(
      refused([](Arguments& a) {
        a.reshape(3, {2, 384});
      }),
      "ValueError: built: argument 4, workspace, has the shape [2, 384], and [bytes] is expected");
  EXPECT_EQ(refused([&](Arguments& a) { a.tensor(3).data = at(1024 - 256); }),
            "ValueError: built: ends shares memory with the workspace");
  EXPECT_EQ(refused([](Arguments& a) { a.tensor(3).device_type = 1; }),
            "ValueError: built: argument 4, workspace, is on cpu, and a tensor on a CUDA device is "
            "expected");

  // None is no workspace.
  Arguments none(at(0));
  none.passed.push_back({kNone, 0, 0});
  tvm_ffi.scratch.tensor.data = at(8192);
  tvm_ffi.scratch.tensor.byte_offset = 64;
  EXPECT_EQ(call(none), "");
  EXPECT_EQ(*at(8192 + 256 + 256), 7);
  EXPECT_TRUE(done());
  EXPECT_EQ(call(Arguments(at(0))), "");
  EXPECT_EQ(call(Arguments(at(0), 1)), "");
  EXPECT_THAT(tvm_ffi.allocated, ElementsAre(768, 768)) << "where one is needed";
  EXPECT_EQ(tvm_ffi.released, 2);
  fake_->fail("cuMemsetD8Async", 555);
  EXPECT_THAT(call(Arguments(at(0))), StartsWith("RuntimeError: built: cuMemsetD8Async failed"));
  EXPECT_EQ(tvm_ffi.released, 3);
  tvm_ffi.out_of_memory = true;
  EXPECT_EQ(call(Arguments(at(0))), "OutOfMemoryError: the allocator's text");
  tvm_ffi.has_allocator = false;
  EXPECT_EQ(
      call(Arguments(at(0))),
      "ValueError: built: it needs a workspace, and no framework that allocates one has called "
      "it; fix: pass a tensor of uint8[768] behind the others");
  EXPECT_EQ(tvm_ffi.released, 3);
}

TEST_F(ExportedTvmFfi, SaysWhereLibtvmFfiIsMissing) {
  const ExportedLibrary library("built", sources_of({plan_of(3, 5)}));
  using Function = int (*)(void*, const Any*, int32_t, Any*);
  const auto function = reinterpret_cast<Function>(library.symbol("__tvm_ffi_built"));
  testing::internal::CaptureStderr();
  const Arguments arguments(at(0));
  Any result;
  EXPECT_EQ(function(nullptr, arguments.passed.data(), 3, &result), -1);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(
          StartsWith("built: the function for TVM-FFI was called, and libtvm_ffi is not loaded or "
                     "too old: there is no TVMFFIErrorSetRaisedFromCStr; fix: "),
          HasSubstr("import tvm_ffi"), HasSubstr("or call built() of built.h")));
  EXPECT_TRUE(fake_->launches().empty());
}

TEST_F(ExportedTvmFfi, FindsLibtvmFfiThatWasLoadedForOthersAlone) {
  const codegen::TempDir folder;
  const std::string library = folder.file("libtvm_ffi.so");
  codegen::write_file(folder.file("a.cc"), std::string("#include <cstdio>\n") + R"cpp(
    extern "C" {
    void TVMFFIErrorSetRaisedFromCStr(const char*, const char* text) { std::fputs(text, stderr); }
    int TVMFFIEnvGetStream, TVMFFIEnvGetDLPackManagedTensorAllocator, TVMFFIEnvTensorAlloc,
        TVMFFIObjectDecRef;
    })cpp");
  const std::string command =
      "c++ -shared -fPIC -Wl,-soname,libtvm_ffi.so -o " + library + " " + folder.file("a.cc");
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT: a test's own command
  const ExportedLibrary exported("built", sources_of({plan_of(3, 5)}));
  using Function = int (*)(void*, const Any*, int32_t, Any*);
  const auto function = reinterpret_cast<Function>(exported.symbol("__tvm_ffi_built"));
  // In a process of its own, as the library stays loaded.
  EXPECT_EXIT(
      {
        dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        std::_Exit(function(nullptr, nullptr, 0, nullptr) == -1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "built: 0 arguments are given, and 3 are expected");
}

TEST(ExportTvmFfi, RefusesPlansWhoseSizesTheTensorsDoNotSay) {
  const auto refused = [](const std::vector<std::string>& sizes,
                          const std::vector<ExportedPlan>& plans) {
    const auto sources = export_calls("built", sizes, plans, {.tvm_ffi = true});
    EXPECT_EQ(sources.status().code(), StatusCode::kInvalidArgument);
    return std::string(sources.status().message());
  };
  ExportedPlan plan = plan_of(3, 5), other = plan_of(4, 5);
  plan.call.tensors[0].dimensions = {{"rows", 0}, {"", 5}};
  EXPECT_EQ(refused(kSizes, {plan}),
            "no tensor has the size 'columns' as an extent, and TVM-FFI passes sizes by shapes");
  other.call.tensors[0].shape.extents = {4, 6};
  EXPECT_EQ(refused({"rows"}, {plan, other}),
            "'x' is [rows, 5], and in a plan [4, 6], which does not follow from its sizes: TVM-FFI "
            "passes no others");
  plan.call.tensors[0].dimensions = {};
  EXPECT_THAT(refused({"rows"}, {plan, plan_of(4, 5)}),
              StartsWith("'x' is [3, 5], and in a plan [4, 5]"));
  plan.call.tensors[0].dimensions = {{"rows", 0}};
  EXPECT_THAT(refused({"rows"}, {plan}), StartsWith("'x' is [rows], and in a plan [3, 5]"));
  EXPECT_TRUE(export_calls("built", kSizes, {plan})->tvm_ffi.empty()) << "unless it is asked for";
}

}  // namespace
}  // namespace heddle::runtime
