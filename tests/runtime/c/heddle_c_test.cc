// libheddle.so as a program in C sees it: this file includes nothing else of Heddle.
#include "heddle/heddle_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "../interop/dlpack_as_published.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StrEq;

class HeddleC : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(heddle_open("interp", &device_), nullptr); }
  void TearDown() override { heddle_close(device_); }

  // Floats on the device.
  void* upload(const std::vector<float>& values) {
    void* memory = nullptr;
    EXPECT_EQ(heddle_allocate(device_, values.size() * sizeof(float), &memory), nullptr);
    EXPECT_EQ(heddle_upload(device_, memory, values.data(), values.size() * sizeof(float)),
              nullptr);
    return memory;
  }
  std::vector<float> download(const void* memory, size_t count) {
    std::vector<float> values(count);
    const char* const error =
        heddle_download(device_, values.data(), memory, count * sizeof(float));
    EXPECT_EQ(error, nullptr) << error;
    return values;
  }
  // What heddle_compile() says of row_sum on these.
  std::string refusal(const std::vector<HeddleTensor>& tensors,
                      const std::vector<const char*>& settings = {},
                      const char* operation = "row_sum") {
    HeddleCall* call = nullptr;
    const char* const error =
        heddle_compile(device_, operation, settings.data(), static_cast<int>(settings.size()),
                       tensors.data(), static_cast<int>(tensors.size()), &call);
    EXPECT_EQ(call, nullptr);
    return error == nullptr ? "" : error;
  }

  HeddleDevice* device_ = nullptr;
  const int64_t extents_[2] = {3, 4}, strides_[2] = {4, 1}, one_ = 1;
  const HeddleTensor x_ = {"x", "f32", 2, extents_, strides_};
  const HeddleTensor y_ = {"y", "f32", 1, extents_, &one_};
};

TEST_F(HeddleC, SpeaksTheVersionOfItsHeader) { EXPECT_EQ(heddle_c_abi(), HEDDLE_C_ABI); }

TEST_F(HeddleC, CallsAnOperationOnMemoryOfTheCaller) {
  // The output stands first: tensors are known by their names.
  const HeddleTensor tensors[] = {y_, x_};
  HeddleCall* call = nullptr;
  ASSERT_EQ(heddle_compile(device_, "row_sum", nullptr, 0, tensors, 2, &call), nullptr);
  void* const x = upload({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  void* const y = upload({0, 0, 0});
  void* pointers[] = {y, x};
  ASSERT_EQ(heddle_launch(call, pointers, nullptr), nullptr);
  ASSERT_EQ(heddle_synchronize(device_), nullptr);
  EXPECT_EQ(download(y, 3), (std::vector<float>{10, 26, 42}));
  // Again, on other memory.
  void* others[] = {upload({0, 0, 0}), upload(std::vector<float>(12, 2))};
  ASSERT_EQ(heddle_launch(call, others, nullptr), nullptr);
  EXPECT_EQ(download(others[0], 3), (std::vector<float>{8, 8, 8}));
  heddle_release(call);
  heddle_free(device_, x);
}

TEST_F(HeddleC, CompilesTheCallsOfAList) {
  char path[] = "/tmp/heddle_c_warm_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  const std::string list =
      "call row_sum x:f32[7,9]{9,1} y:f32[7]{1}\n"
      "call row_sum x:f32[7,9]{9,1}\n"
      "call row_sum x:f32[7,9]{9,1} y:f32[7]{1} dtype=bf17\n";
  ASSERT_EQ(write(file, list.data(), list.size()), static_cast<ssize_t>(list.size()));
  struct Seen {
    int calls = 0, done = 0, total = 0;
    std::string job;
  } seen;
  const HeddleProgress progress = [](void* context, int32_t done, int32_t total, const char* job,
                                     const char* error) {
    Seen& to = *static_cast<Seen*>(context);
    to = {to.calls + 1, done, total, job};
    EXPECT_EQ(error, nullptr);
  };
  const char* json = nullptr;
  ASSERT_EQ(heddle_warm_up(device_, path, 1, progress, &seen, &json), nullptr);
  EXPECT_THAT(json,
              AllOf(HasSubstr("{\"lines\":3,\"warmed\":1,\"there\":0,\"skipped\":[{\"line\":2,"),
                    HasSubstr("needs the tensor 'y', f32[7]"), HasSubstr("bf17"),
                    HasSubstr("\"failed\":[],\"kernels\":1,\"from_disk\":0,")));
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.done, 1);
  EXPECT_EQ(seen.total, 1);
  EXPECT_EQ(seen.job, "call of row_sum");
  EXPECT_EQ(heddle_warm_up(device_, path, 0, nullptr, nullptr, nullptr), nullptr);
  ASSERT_EQ(write(file, "call\n", 5), 5);
  EXPECT_THAT(heddle_warm_up(device_, path, 0, nullptr, nullptr, &json),
              HasSubstr(": line 4 is damaged: the call's name is missing"));
  EXPECT_THAT(heddle_warm_up(device_, nullptr, 0, nullptr, nullptr, nullptr),
              StrEq("an argument of heddle_warm_up() is NULL"));
  close(file);
  unlink(path);
}

TEST_F(HeddleC, TakesStridesAndOffsets) {
  // The columns 1 and 2 of a matrix of four.
  const int64_t extents[] = {3, 2};
  const HeddleTensor tensors[] = {{"x", "f32", 2, extents, strides_}, y_};
  HeddleCall* call = nullptr;
  ASSERT_EQ(heddle_compile(device_, "row_sum", nullptr, 0, tensors, 2, &call), nullptr);
  void* const x = upload({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  void* pointers[] = {static_cast<float*>(x) + 1, upload({0, 0, 0})};
  ASSERT_EQ(heddle_launch(call, pointers, nullptr), nullptr);
  EXPECT_EQ(download(pointers[1], 3), (std::vector<float>{5, 13, 21}));
  heddle_release(call);
}

TEST_F(HeddleC, TakesSettings) {
  const int64_t extents[] = {2, 2}, strides[] = {2, 1};
  const HeddleTensor tensors[] = {{"x", "f32", 2, extents, strides},
                                  {"y", "f32", 1, extents, &one_}};
  const char* settings[] = {"op=max", "dim=first"};
  HeddleCall* call = nullptr;
  ASSERT_EQ(heddle_compile(device_, "reduce", settings, 2, tensors, 2, &call), nullptr);
  void* pointers[] = {upload({1, 5, 3, 2}), upload({0, 0})};
  ASSERT_EQ(heddle_launch(call, pointers, nullptr), nullptr);
  EXPECT_EQ(download(pointers[1], 2), (std::vector<float>{3, 5}));
  heddle_release(call);
}

TEST_F(HeddleC, SaysWhatThereIs) {
  const char* json = nullptr;
  ASSERT_EQ(heddle_operations(&json), nullptr);
  EXPECT_THAT(json, AllOf(HasSubstr("\"name\": \"softmax\""), HasSubstr("\"name\": \"dtype\"")));
  ASSERT_EQ(heddle_device_info(device_, &json), nullptr);
  EXPECT_THAT(json, AllOf(HasSubstr("\"compute_capability\":90"), HasSubstr("\"l2_bytes\":")));
}

TEST_F(HeddleC, SaysWhichTensorsACallHas) {
  const char* settings[] = {"dtype=bf16", "k=4"};
  const char* sizes[] = {"rows=7", "columns=9"};
  const char* json = nullptr;
  ASSERT_EQ(heddle_tensors("topk", settings, 2, sizes, 2, &json), nullptr);
  std::string text = json;
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_EQ(
      text,
      R"({"tensors":[{"name":"x","dtype":"bf16","extents":[7,9],"reads":true,"writes":false},)"
      R"({"name":"values","dtype":"bf16","extents":[7,4],"reads":false,"writes":true},)"
      R"({"name":"indices","dtype":"i64","extents":[7,4],"reads":false,"writes":true}],)"
      R"("sizes":{"columns":9,"k":4,"rows":7}})");
}

TEST_F(HeddleC, SaysWhatResultsFollowFromTheInputs) {
  const char* json = nullptr;
  const char* settings[] = {"k=2"};
  ASSERT_EQ(heddle_bind("topk", settings, 1, &x_, 1, &json), nullptr);
  std::string text = json;
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_THAT(text,
              AllOf(HasSubstr(R"({"name":"values","dtype":"f32","extents":[3,2],"reads":false)"),
                    HasSubstr(R"("sizes":{"columns":4,"k":2,"rows":3})")));
  const HeddleTensor other = {"y", "f32", 2, extents_, strides_};
  EXPECT_THAT(heddle_bind("row_sum", nullptr, 0, &other, 1, &json), HasSubstr("'y'"));
  EXPECT_THAT(heddle_bind("row_sun", nullptr, 0, &x_, 1, &json),
              HasSubstr("did you mean 'row_sum'?"));
  EXPECT_THAT(heddle_bind("row_sum", nullptr, 0, nullptr, 1, &json), StrEq("tensors is NULL"));
  EXPECT_THAT(heddle_bind("row_sum", nullptr, 0, &x_, 1, nullptr),
              HasSubstr("heddle_bind() is NULL"));
}

TEST_F(HeddleC, RefusesWhatDoesNotFit) {
  const int64_t five = 5;
  EXPECT_EQ(
      refusal({x_, {"y", "f32", 1, &five, &one_}}),
      "'y' has extent 5 in mode 0, and kernel 'row_sum' takes 3 there, rows of 'x'; fix: pass "
      "tensors that agree in rows");
  EXPECT_EQ(refusal({x_}), "kernel 'row_sum' needs the tensor 'y', f32[3]; fix: describe it, too");
  EXPECT_EQ(refusal({x_, x_, y_}), "tensor 'x' is given twice");
  EXPECT_EQ(refusal({x_, {"z", "f32", 1, extents_, &one_}}),
            "kernel 'row_sum' has no parameter 'z'; it has x, y");
  EXPECT_EQ(refusal({x_, {"y", "f33", 1, extents_, &one_}}),
            "'y' has elements of type 'f33', which there is not; fix: name one of bool, i8, u8, "
            "i16, u16, i32, u32, i64, u64, e4m3, e5m2, e8m0, e2m1x2, f16, bf16, tf32, f32, f64");
  EXPECT_EQ(refusal({x_, {"y", "f32", -1, extents_, &one_}}),
            "'y' has rank -1; fix: pass how many extents it has");
  EXPECT_EQ(refusal({x_, {"y", "f32", 1, nullptr, &one_}}),
            "a tensor's extents or strides is NULL");
  EXPECT_EQ(refusal({x_, {nullptr, "f32", 1, extents_, &one_}}), "a tensor's name is NULL");
  EXPECT_THAT(refusal({x_, y_}, {"dtype=bf16"}),
              HasSubstr("'x' is f32[3, 4], and kernel 'row_sum' takes bf16"));
  EXPECT_EQ(refusal({x_, y_}, {"dtype"}), "setting 'dtype' is not of the form name=value");
  EXPECT_EQ(refusal({x_, y_}, {"dtype=f32", "dtype=f16"}), "setting 'dtype' is given twice");
  EXPECT_EQ(refusal({x_, y_}, {}, "row_sun"),
            "unknown kernel 'row_sun'; did you mean 'row_sum'? (heddle_operations() has all)");
}

TEST_F(HeddleC, RefusesMemoryThatIsNotThere) {
  const HeddleTensor tensors[] = {x_, y_};
  HeddleCall* call = nullptr;
  ASSERT_EQ(heddle_compile(device_, "row_sum", nullptr, 0, tensors, 2, &call), nullptr);
  void* pointers[] = {nullptr, upload({0, 0, 0})};
  EXPECT_THAT(heddle_launch(call, pointers, nullptr), AllOf(HasSubstr("'x'"), HasSubstr("null")));
  EXPECT_THAT(heddle_launch(call, nullptr, nullptr),
              StrEq("an argument of heddle_launch() is NULL"));
  heddle_release(call);
}

TEST_F(HeddleC, GivesMemoryToOtherLibraries) {
  void* const memory = upload({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  void* managed = nullptr;
  ASSERT_EQ(heddle_to_dlpack(device_, memory, &x_, 1, &managed), nullptr);
  auto* const tensor = static_cast<DLManagedTensorVersioned*>(managed);
  ASSERT_EQ(heddle_to_dlpack(device_, memory, &y_, 0, &managed), nullptr);
  auto* const legacy = static_cast<DLManagedTensor*>(managed);
  heddle_free(device_, memory);
  EXPECT_EQ(tensor->version.major, 1u);
  EXPECT_EQ(tensor->dl_tensor.ndim, 2);
  EXPECT_EQ(tensor->dl_tensor.shape[1], 4);
  tensor->deleter(tensor);
  EXPECT_EQ(static_cast<const float*>(legacy->dl_tensor.data)[2], 2.0f) << "it has one owner left";
  legacy->deleter(legacy);

  EXPECT_THAT(heddle_to_dlpack(device_, memory, &x_, 1, &managed), HasSubstr("or that was freed"));
  void* const small = upload({0, 1, 2});
  EXPECT_THAT(heddle_to_dlpack(device_, small, &x_, 1, &managed),
              HasSubstr("does not lie in a buffer of 12 bytes"));
  const HeddleTensor odd = {"x", "f33", 2, extents_, strides_};
  EXPECT_THAT(heddle_to_dlpack(device_, small, &odd, 1, &managed), HasSubstr("'f33'"));
  EXPECT_EQ(managed, legacy) << "an error writes nothing";
}

TEST(HeddleCDevice, SaysWhyItCannotBeOpened) {
  HeddleDevice* device = nullptr;
  EXPECT_THAT(heddle_open("cuda:x", &device), HasSubstr("cuda:x"));
  EXPECT_THAT(heddle_open(nullptr, &device), StrEq("an argument of heddle_open() is NULL"));
  EXPECT_EQ(device, nullptr);
  heddle_close(nullptr);
}

TEST_F(HeddleC, RefusesNothingInThePlaceOfAnArgument) {
  const char* json = nullptr;
  void* memory = nullptr;
  float x = 0;
  const auto says = [](const char* text, const char* function) {
    EXPECT_THAT(text, StrEq(std::string("an argument of ") + function + "() is NULL"));
  };
  says(heddle_device_info(nullptr, &json), "heddle_device_info");
  says(heddle_operations(nullptr), "heddle_operations");
  says(heddle_tensors("row_sum", nullptr, 0, nullptr, 0, nullptr), "heddle_tensors");
  says(heddle_compile(device_, "row_sum", nullptr, 0, &x_, 1, nullptr), "heddle_compile");
  says(heddle_allocate(nullptr, 4, &memory), "heddle_allocate");
  says(heddle_upload(device_, nullptr, &x, 4), "heddle_upload");
  says(heddle_download(device_, &x, nullptr, 4), "heddle_download");
  says(heddle_synchronize(nullptr), "heddle_synchronize");
  says(heddle_to_dlpack(device_, &x, &x_, 1, nullptr), "heddle_to_dlpack");
  heddle_free(nullptr, nullptr);
  EXPECT_THAT(heddle_tensors("row_sum", nullptr, 1, nullptr, 0, &json), StrEq("settings is NULL"));
  HeddleCall* call = nullptr;
  EXPECT_THAT(heddle_compile(device_, "row_sum", nullptr, 0, &x_, -1, &call),
              StrEq("the number of tensors is -1; fix: pass how many the array has"));
}

TEST_F(HeddleC, TextsBelongToTheirThreads) {
  const std::string unknown = refusal({x_, y_}, {}, "nothing_like_it");
  HeddleCall* call = nullptr;
  const char* const mine = heddle_compile(device_, "nothing_like_it", nullptr, 0, &x_, 1, &call);
  std::thread([&] { EXPECT_THAT(refusal({x_}), HasSubstr("needs the tensor")); }).join();
  EXPECT_EQ(mine, unknown);
}

}  // namespace
