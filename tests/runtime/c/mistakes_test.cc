// What a caller of libheddle.so does wrong, a row each: the whole text, which says once what is wrong, of which operation, and
// how to mend it. What a caller cannot choose, such as blocks and grids, is in tests/runtime/mistakes_test.cc.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "heddle/heddle_c.h"

namespace {

std::string text_of(const char* error) { return error == nullptr ? "" : error; }

// With the kernel's place as its file's name alone: where that lies, and the line, may change.
std::string without_place(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\([^()]*row_sum\.cc:\d+\))"), "(row_sum.cc)");
}

// The stand-in for the driver that lies beside this program, by a name that is new to the process `fresh` times over.
std::string fake_driver(int fresh = 0) {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  std::string folder(path, length > 0 ? static_cast<size_t>(length) : 0);
  folder.resize(folder.rfind('/') + 1);
  for (int i = 0; i < fresh; ++i) folder += "./";
  return folder + "libfake_cuda.so";
}

// A tensor and what it points to.
struct Tensor {
  const char* name;
  const char* dtype;
  std::vector<int64_t> extents, strides;

  HeddleTensor get() const {
    return {name, dtype, static_cast<int32_t>(extents.size()), extents.data(), strides.data()};
  }
};
const Tensor x = {"x", "f32", {3, 4}, {4, 1}};
const Tensor y = {"y", "f32", {3}, {1}};

std::string compile(HeddleDevice* device, const char* operation, const std::vector<Tensor>& tensors,
                    const std::vector<const char*>& settings = {}, HeddleCall** call = nullptr) {
  std::vector<HeddleTensor> described;
  for (const Tensor& tensor : tensors) described.push_back(tensor.get());
  HeddleCall* made = nullptr;
  const std::string text =
      text_of(heddle_compile(device, operation, settings.data(), static_cast<int>(settings.size()),
                             described.data(), static_cast<int>(described.size()), &made));
  EXPECT_EQ(made == nullptr, !text.empty());
  if (call == nullptr) {
    heddle_release(made);
  } else {
    *call = made;
  }
  return text;
}

class MistakesInC : public testing::Test {
 protected:
  void SetUp() override {
    setenv("HEDDLE_CUDA_LIBRARY", fake_driver().c_str(), 1);
    setenv("HEDDLE_OPTIONS", "--assembler=driver", 1);
    ASSERT_EQ(text_of(heddle_open("cuda:0", &gpu_)), "");
  }
  void TearDown() override {
    heddle_close(gpu_);
    for (const char* name : {"HEDDLE_CUDA_LIBRARY", "HEDDLE_OPTIONS", "HEDDLE_PTXAS"})
      unsetenv(name);
  }
  HeddleDevice* gpu_ = nullptr;
};

TEST_F(MistakesInC, Tensors) {
  struct Mistake {
    std::string text;
    const char* operation;
    std::vector<Tensor> tensors;
    std::vector<const char*> settings = {};
  };
  const Mistake mistakes[] = {
      {"'x' is f16[3, 4], and kernel 'row_sum' takes f32; fix: set dtype=f16, or convert it",
       "row_sum",
       {{"x", "f16", {3, 4}, {4, 1}}, y}},
      {"'x' has elements of type 'f31', which there is not; fix: name one of bool, i8, u8, i16, "
       "u16, i32, u32, i64, u64, "
       "e4m3, e5m2, e8m0, e2m1x2, f16, bf16, tf32, f32, f64",
       "row_sum",
       {{"x", "f31", {3, 4}, {4, 1}}, y}},
      {"setting 'dtype' of kernel 'row_sum' cannot be 'f64': it is one of f32, f16, bf16",
       "row_sum",
       {x, y},
       {"dtype=f64"}},
      {"'x' is f32[12], and kernel 'row_sum' takes a tensor of 2 modes, not of 1; fix: reshape it",
       "row_sum",
       {{"x", "f32", {12}, {1}}, y}},
      {"'y' has extent 4 in mode 0, and kernel 'row_sum' takes 3 there, rows of 'x'; fix: pass "
       "tensors that agree in rows",
       "row_sum",
       {x, {"y", "f32", {4}, {1}}}},
      {"'x' of kernel 'row_sum' cannot have extent -3 in mode 0; fix: pass 0 where there are no "
       "elements",
       "row_sum",
       {{"x", "f32", {-3, 4}, {4, 1}}, y}},
      {"'y' has extents [3] and strides [0], by which elements share memory, and kernel 'row_sum' "
       "writes it; fix: give a "
       "tensor whose elements lie apart",
       "row_sum",
       {x, {"y", "f32", {3}, {0}}}},
      {"'y' has extents [3, 4] and strides [2, 1], by which elements share memory, and kernel "
       "'softmax' writes it; fix: give "
       "a tensor whose elements lie apart",
       "softmax",
       {x, {"y", "f32", {3, 4}, {2, 1}}}},
      {"'y' has extents [3, 4] and strides [3, -2], by which elements share memory, and kernel "
       "'softmax' writes it; fix: "
       "give a tensor whose elements lie apart",
       "softmax",
       {x, {"y", "f32", {3, 4}, {3, -2}}}},
      {"gemm: a has strides 128 and 2, and one of them has to be 1; fix: copy it to contiguous "
       "memory",
       "gemm",
       {{"a", "f16", {64, 64}, {128, 2}},
        {"b", "f16", {64, 64}, {64, 1}},
        {"d", "f16", {64, 64}, {64, 1}}}},
      {"topk: k is 5 and rows have 4 elements; fix: a k of at most 4",
       "topk",
       {x, {"values", "f32", {3, 5}, {5, 1}}, {"indices", "i64", {3, 5}, {5, 1}}},
       {"k=5"}},
      {"kernel 'row_sum' needs the tensor 'y', f32[3]; fix: describe it, too", "row_sum", {x}},
      {"unknown kernel 'row_sums'; did you mean 'row_sum'? (heddle_operations() has all)",
       "row_sums",
       {x, y}},
      // What looks like them and is none.
      {"", "row_sum", {{"x", "f32", {3, 4}, {-8, 2}}, y}},
      {"", "row_sum", {{"x", "f32", {3, 4}, {0, 1}}, y}},
      {"", "softmax", {x, {"y", "f32", {3, 4}, {-4, -1}}}},
      {"", "softmax", {x, {"y", "f32", {3, 4}, {1, 3}}}},
      {"", "softmax", {x, {"y", "f32", {3, 4}, {4, 3}}}},
      {"", "softmax", {{"x", "f32", {1, 4}, {0, 1}}, {"y", "f32", {1, 4}, {0, 1}}}},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(compile(gpu_, mistake.operation, mistake.tensors, mistake.settings), mistake.text);
  }
}

TEST_F(MistakesInC, Pointers) {
  HeddleCall* call = nullptr;
  ASSERT_EQ(compile(gpu_, "row_sum", {x, y}, {}, &call), "");
  void *from = nullptr, *to = nullptr;
  ASSERT_EQ(text_of(heddle_allocate(gpu_, 48, &from)), "");
  ASSERT_EQ(text_of(heddle_allocate(gpu_, 12, &to)), "");
  static float host[12];
  const auto launch = [&](void* at, void* out) {
    void* pointers[] = {at, out};
    return text_of(heddle_launch(call, pointers, nullptr));
  };
  const auto out_of_reach = [](const std::string& name) {
    return "'" + name +
           "' of kernel 'row_sum' lies in memory of the host, which kernels on cuda:0 cannot "
           "reach; fix: copy it to memory "
           "of the device, or pin it (cuMemHostRegister)";
  };
  EXPECT_EQ(without_place(launch(nullptr, to)),
            "argument 0 ('x') of kernel 'row_sum' (row_sum.cc) is a null pointer to a tensor with "
            "elements; fix: allocate it, "
            "or pass extents of 0");
  EXPECT_EQ(without_place(launch(reinterpret_cast<void*>(0x1002), to)),
            "argument 0 ('x') of kernel 'row_sum' (row_sum.cc) starts at 0x1002, which is no "
            "multiple of its elements' 4 "
            "bytes, and a GPU cannot read them there; fix: start at an element, or copy it to "
            "aligned memory");
  EXPECT_EQ(launch(host, to), out_of_reach("x"));
  EXPECT_EQ(launch(from, host), out_of_reach("y"));
  EXPECT_EQ(launch(from, to), "");
  EXPECT_EQ(launch(host, to), "") << "only launches before the first that succeeds are asked";
  heddle_release(call);

  // An interpreter sees every access.
  HeddleDevice* interp = nullptr;
  ASSERT_EQ(text_of(heddle_open("interp", &interp)), "");
  ASSERT_EQ(compile(interp, "row_sum", {x, y}, {}, &call), "");
  const std::string text = launch(host, host);
  for (const char* part :
       {"row_sum.cc:", ": error: reads ", " of x(0, 0), which is not in memory: ", " bytes at 0x",
        ", which belongs to no allocation of this device (kernel 'row_sum', block (0, 0, 0), "
        "thread (0, 0, 0)",
        "\n  fix: check the index, and that the buffer is alive and as large as the kernel "
        "expects\n"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
  heddle_release(call);
  heddle_close(interp);
}

// Each is another driver to the process, by another name.
TEST_F(MistakesInC, Machines) {
  void* const library = dlopen(fake_driver().c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto pretend =
      reinterpret_cast<void (*)(int, int, int)>(dlsym(library, "heddle_fake_cuda_pretend"));
  ASSERT_NE(pretend, nullptr);
  int fresh = 0;
  const auto on = [&](int version, int major, int minor) {
    pretend(version, major, minor);
    setenv("HEDDLE_CUDA_LIBRARY", fake_driver(++fresh).c_str(), 1);
    HeddleDevice* device = nullptr;
    std::string text = text_of(heddle_open("cuda:0", &device));
    if (text.empty()) text = compile(device, "row_sum", {x, y});
    heddle_close(device);
    return without_place(text);
  };
  const auto refusal = [](const std::string& version, const std::string& fix) {
    return "kernel 'row_sum' (row_sum.cc) cannot be compiled for cuda:0: Fake GPU has compute "
           "capability " +
           version + ", and Heddle compiles for sm_80 to sm_120a; fix: " + fix;
  };
  EXPECT_EQ(on(13000, 6, 1), refusal("6.1",
                                     "use a GPU of compute capability 8.0 or newer, or the "
                                     "interpreter, Device::open(\"interp\")"));
  EXPECT_EQ(on(13000, 13, 0), refusal("13.0",
                                      "update Heddle, or let the driver translate older code, "
                                      "HEDDLE_OPTIONS=\"--gpu-arch=sm_120 "
                                      "--assembler=driver\""));
  EXPECT_EQ(on(13000, 12, 1), "");
  const std::string old = on(11040, 9, 0);
  EXPECT_EQ(old, "the driver " + fake_driver(fresh) +
                     " speaks CUDA 11.4, and Heddle needs 12.0 or newer; fix: update the NVIDIA "
                     "driver to 525 or newer; "
                     "until then the interpreter still works: Device::open(\"interp\")");
  setenv("HEDDLE_PTXAS", "/nowhere/ptxas", 1);
  setenv("HEDDLE_OPTIONS", "--assembler=ptxas", 1);
  EXPECT_EQ(on(13000, 8, 0),
            "kernel 'row_sum' (row_sum.cc): ptxas from HEDDLE_PTXAS (/nowhere/ptxas) cannot be "
            "used: /nowhere does not exist; "
            "fix: unset HEDDLE_PTXAS, or set it to the absolute path of ptxas");
  pretend(13000, 9, 0);
  setenv("HEDDLE_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
  HeddleDevice* device = nullptr;
  EXPECT_EQ(text_of(heddle_open("cuda:0", &device)),
            "/nowhere/libcuda.so.1 not found; fix: install NVIDIA's driver, or name its library in "
            "HEDDLE_CUDA_LIBRARY; the "
            "interpreter still works: Device::open(\"interp\")");
  EXPECT_EQ(text_of(heddle_open("gpu", &device)),
            "'gpu' names no device; say \"cuda:0\" (or another number) or \"interp\"");
}

}  // namespace
