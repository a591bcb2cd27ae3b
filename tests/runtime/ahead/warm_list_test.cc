// The text of warm-up lists, and what is made of facts.
#include "heddle/runtime/ahead/warm_list.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/launch/launch_shape.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/ahead/fact_arguments.h"
#include "heddle/runtime/argument_facts.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;

TEST(WarmList, IsRefusedByTheLineThatIsDamaged) {
  const std::string line =
      "kernel warm at=a.cc:1 takes=\"x: f32[n]\" values=77 target=sm_90a block=32x1x1 "
      "cluster=1x1x1 options=\"\" facts=\"align(0)=16 fits32(0)=1\"";
  const auto refusal = [&](const std::string& text) {
    const auto entries = parse_warm_list("# first\n" + line + "\n" + text);
    EXPECT_EQ(entries.status().code(), StatusCode::kInvalidArgument) << text;
    return std::string(entries.status().message());
  };
  EXPECT_EQ(refusal("kernel warm at=x"),
            "line 3 is damaged: it has no 'takes'; fix: delete that line, or record the list anew");
  EXPECT_THAT(refusal(line.substr(0, line.size() - 3)), HasSubstr("a quote is not closed"));
  EXPECT_THAT(refusal(line + " tail"), HasSubstr("'tail' is not of the form name=value"));
  EXPECT_THAT(refusal(line + " at=b"), HasSubstr("'at' is given twice"));
  EXPECT_THAT(refusal(line + " size=b"), HasSubstr("a kernel's line has no 'size'"));
  EXPECT_THAT(refusal("kernel"), HasSubstr("the kernel's name is missing"));
  EXPECT_THAT(refusal(std::string("\0\x01 k", 4)), HasSubstr("it starts with '\\x00\\x01', not"));
  const auto with = [&](const std::string& name, const std::string& value) {
    std::string text = line;
    const size_t at = text.find(" " + name + "=") + name.size() + 2;
    const size_t end = text[at] == '"' ? text.find('"', at + 1) + 1 : text.find(' ', at);
    return refusal(text.replace(at, end - at, value));
  };
  EXPECT_THAT(with("block", "0x1x1"), HasSubstr("'0x1x1' is no block, such as 2x1x1"));
  EXPECT_THAT(with("block", "32"), HasSubstr("'32' is no block"));
  EXPECT_THAT(with("cluster", "1x1xy"), HasSubstr("'1x1xy' is no cluster"));
  EXPECT_THAT(with("values", "7g"), HasSubstr("values are hexadecimal"));
  EXPECT_THAT(with("values", "777"), HasSubstr("values are hexadecimal"));
  EXPECT_THAT(with("options", "\"\\q\""), HasSubstr("is no text"));
  for (const char* const fact : {"align(0)", "align(0,0)=1", "extent(0)=1", "extent(0,256)=1",
                                 "extent(-1,0)=1", "align(0=1", "aligned(0)=1", "align(0)=x"}) {
    EXPECT_THAT(with("facts", fact), HasSubstr(absl::StrCat("'", fact, "' is no fact"))) << fact;
  }
  for (const char* const tensor : {"x", "x:f32", "x:f32[1]", "x:f32[1]{1,1}", "x:f32[a]{1}",
                                   "x:g32[1]{1}", "x:f32[1]{1", ":f32[1]{1}"}) {
    EXPECT_THAT(refusal(absl::StrCat("call f ", tensor)),
                HasSubstr(absl::StrCat("'", tensor, "' is no tensor")));
  }
  EXPECT_THAT(refusal("call f x:f32[1]{1} x:f32[1]{1}"), HasSubstr("'x' is given twice"));
  EXPECT_THAT(refusal("call f a=1 a=2"), HasSubstr("'a=' is given twice"));
}

TEST(WarmList, IsReadAsItWasPrinted) {
  KernelLine kernel{.kernel = {.name = "a \"b\"\n", .place = "", .takes = "x: \\", .values = "?"},
                    .target = "sm_80",
                    .block = ir::kBlockOfKernel,
                    .cluster = Dim3(2, 1, 1),
                    .options = "--passes='O1, licm'",
                    .facts = {{{ir::FactKind::kExtent, 3, 2}, 1'000'000'000'000}}};
  CallLine call{
      .operation = "f",
      .settings = {{"a", ""}, {"b", "5\" x:y"}},
      .tensors = {{"x", {ir::Scalar::kBF16, {8, 4}}, {-4, 0}}, {"s", {ir::Scalar::kF32, {}}, {}}}};
  EXPECT_EQ(print(call), "call f a=\"\" b=\"5\\\" x:y\" x:bf16[8,4]{-4,0} s:f32[]{}");
  const auto entries = parse_warm_list(print(kernel) + "\r\n" + print(call));
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 2u);
  const auto& read = std::get<KernelLine>((*entries)[0].content);
  EXPECT_EQ(read.kernel, kernel.kernel);
  EXPECT_EQ(read.block, kernel.block);
  EXPECT_EQ(read.cluster, kernel.cluster);
  EXPECT_EQ(read.facts, kernel.facts);
  EXPECT_EQ(read.options, kernel.options);
  EXPECT_EQ(print(read), print(kernel));
  EXPECT_EQ(print(std::get<CallLine>((*entries)[1].content)), print(call));
}

// Arguments of all kinds: what is made of their facts has these facts.
TEST(FactArguments, HaveTheFactsOfTheArgumentsThatTheyStandFor) {
  const auto view = [](int rank, bool read_only) {
    return ir::Type::view(ir::Scalar::kF32, ir::Space::kGlobal, rank, read_only);
  };
  const std::vector<ir::ParamInfo> all = {{.name = "x", .type = view(2, true)},
                                          {.name = "y", .type = view(2, false)},
                                          {.name = "z", .type = view(1, false)},
                                          {.name = "w", .type = view(1, false)},
                                          {.name = "p", .type = view(1, false), .unbounded = true},
                                          {.name = "n", .type = ir::Type::of(ir::Scalar::kI32)}};
  const int64_t one = 1;
  int seen = 0;
  for (const char* const name : {"sm_80", "sm_100"}) {
    const ir::Target& target = *ir::find_target(name);
    for (const uint64_t distance : {0, 4, 16, 32, 1 << 20}) {
      for (const int64_t extent : {0, 1, 6, 1 << 30}) {
        for (const int64_t stride : {0, 1, 5, 24, -8}) {
          const int64_t extents[] = {extent, 4}, strides[] = {stride, 1}, turned[] = {1, stride};
          const uint64_t at = uint64_t{1} << 45;
          const Argument arguments[] = {tensor_argument(at, extents, strides, 2, 4),
                                        tensor_argument(at + distance, extents, turned, 2, 4),
                                        tensor_argument(at + 2 * distance, extents, strides, 1, 4),
                                        tensor_argument(2 * at, &one, &one, 1, 4),
                                        pointer_argument(at + 8),
                                        scalar_argument(7)};
          for (const size_t count : {4, 6}) {  // the pointer shares memory with everything
            const auto params = absl::MakeConstSpan(all).subspan(0, count);
            const auto facts = all_facts(params, {arguments, count}, target);
            const auto made = FactArguments::of(params, facts, target);
            ASSERT_THAT(made, IsOk()) << print_facts(facts);
            EXPECT_EQ(all_facts(params, made->arguments(), target), facts);
            ++seen;
          }
        }
      }
    }
  }
  EXPECT_EQ(seen, 400);
}

}  // namespace
}  // namespace heddle::runtime
