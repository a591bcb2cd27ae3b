// What the GPU makes of every op, recorded once, held against the interpreter and the constant
// folder: each scalar op has one meaning.
//
//   test_vectors                          // replays tests/vectors/h200.vectors
//   test_vectors --device=cuda:0          // against a GPU in the interpreter's place
//   HEDDLE_VECTORS=FILE test_vectors      // another recording
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "heddle/ir/passes/passes.h"
#include "support/test_device.h"
#include "vectors/case.h"
#include "vectors/comparison.h"
#include "vectors/device_run.h"
#include "vectors/recording.h"

namespace heddle::vectors {
namespace {

constexpr char kHowToRecord[] =
    "record them on a machine with an H200: record_vectors --out=tests/vectors/h200.vectors";

// Cases whose inputs are in memory at a time.
constexpr size_t kPortion = 64;
// Mistakes shown of one case.
constexpr int kShown = 3;

std::string path() {
  const char* const other = std::getenv("HEDDLE_VECTORS");
  return other != nullptr ? other : HEDDLE_TEST_DATA_DIR "/vectors/h200.vectors";
}

const std::vector<Case>& cases() {
  static const auto& all = *new std::vector<Case>(all_cases());
  return all;
}

const StatusOr<Recording>& recording() {
  static const auto& read = *new StatusOr<Recording>([]() -> StatusOr<Recording> {
    std::ifstream file(path(), std::ios::binary);
    if (!file) return NotFoundError(absl::StrCat("there is no ", path()));
    std::ostringstream text;
    text << file.rdbuf();
    return parse_recording(text.str(), cases());
  }());
  return read;
}

class Replay : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(recording().ok()) << recording().status().message() << "; " << kHowToRecord;
  }

  // The recorded results for these inputs; nullptr, and a failure, where there are none.
  static const Column* recorded(const Case& c, const std::vector<Column>& inputs) {
    const auto found = recording()->cases.find(c.name);
    if (found == recording()->cases.end()) {
      ADD_FAILURE() << "no results of '" << c.name << "' are recorded; " << kHowToRecord;
      return nullptr;
    }
    const Recorded& results = found->second;
    if (results.inputs == checksum(inputs) && results.results.size() == inputs[0].size()) {
      return &results.results;
    }
    ADD_FAILURE() << "the results of '" << c.name << "' are those of other inputs; "
                  << kHowToRecord;
    return nullptr;
  }

  static Column tuple_of(const std::vector<Column>& inputs, size_t i) {
    Column tuple;
    for (const Column& column : inputs) tuple.push_back(column[i]);
    return tuple;
  }
};

// Counts the mistakes of a case, and shows the first.
class Mistakes {
 public:
  explicit Mistakes(absl::string_view who) : who_(who) {}

  void check(const Case& c, const Column& operands, uint64_t recorded, uint64_t got) {
    const std::string wrong = complaint(c, operands, recorded, got);
    if (!wrong.empty()) add(c, operands, absl::StrCat(describe(c.result, got), "; ", wrong));
  }
  void add(const Case& c, const Column& operands, const std::string& what) {
    if (++count_ > kShown) return;
    ADD_FAILURE() << who_ << ": " << describe(c, operands) << " gives " << what;
  }
  ~Mistakes() {
    if (count_ > kShown) ADD_FAILURE() << who_ << ": " << count_ - kShown << " more of this case";
  }
  Mistakes(const Mistakes&) = delete;
  Mistakes& operator=(const Mistakes&) = delete;

 private:
  const absl::string_view who_;
  int count_ = 0;
};

TEST_F(Replay, HasEnoughVectorsOfAnH200) {
  EXPECT_TRUE(absl::StrContains(recording()->device, "NVIDIA H200")) << recording()->device;
  size_t vectors = 0;
  for (const auto& [name, results] : recording()->cases) vectors += results.results.size();
  EXPECT_GE(vectors, 250'000u);
}

TEST_F(Replay, KeepsTheBoundsOfApproximateOps) {
  for (const Case& c : cases()) {
    if (!has(ir::info(c.opcode), ir::kApproximate)) continue;
    const std::vector<Column> inputs = inputs_for(c);
    const Column* const expected = recorded(c, inputs);
    if (expected == nullptr) continue;
    Mistakes mistakes("the recording");
    for (size_t i = 0; i < expected->size(); ++i) {
      mistakes.check(c, tuple_of(inputs, i), (*expected)[i], (*expected)[i]);
    }
  }
}

TEST_F(Replay, TheDeviceAgrees) {
  const absl::Span<const Case> all = cases();
  for (size_t at = 0; at < all.size(); at += kPortion) {
    const absl::Span<const Case> portion = all.subspan(at, kPortion);
    std::vector<std::vector<Column>> inputs;
    for (const Case& c : portion) inputs.push_back(inputs_for(c));
    const StatusOr<std::vector<Column>> results = run_on(test_device(), portion, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    for (size_t n = 0; n < portion.size(); ++n) {
      const Column* const expected = recorded(portion[n], inputs[n]);
      if (expected == nullptr) continue;
      Mistakes mistakes(test_device_name());
      for (size_t i = 0; i < expected->size(); ++i) {
        mistakes.check(portion[n], tuple_of(inputs[n], i), (*expected)[i], (*results)[n][i]);
      }
    }
  }
}

// A kernel that stores what the op makes of constants.
class ConstantKernel {
 public:
  explicit ConstantKernel(const Case& c) : c_(c), b_(kernel_) {
    kernel_.block = {32, 1, 1};
    out_ = kernel_.add_param("out", ir::Type::view(c.result, ir::Space::kGlobal, 1), {ir::kDynamic},
                             {1});
    offset_ = b_.constant_int(ir::kI32Type, 0);
  }

  void add(const Column& tuple) {
    std::vector<ir::ValueId> operands;
    for (size_t i = 0; i < tuple.size(); ++i) {
      operands.push_back(b_.constant(ir::Type::of(c_.operands[i]), tuple[i]));
    }
    stores_.push_back(b_.create_op(ir::Opcode::kStore, {out_, apply(b_, c_, operands), offset_}));
  }

  // After the pass: what the fold left of each, where it is a constant.
  std::vector<std::optional<uint64_t>> folded() {
    ir::Analyses analyses(kernel_);
    ir::PassContext context(kernel_, analyses);
    ir::fold(context);
    std::vector<std::optional<uint64_t>> results;
    for (const ir::OpId store : stores_) {
      results.push_back(kernel_.constant_bits(kernel_.op(store).value()));
    }
    return results;
  }

 private:
  const Case& c_;
  ir::Kernel kernel_{"k"};
  ir::Builder b_;
  ir::ValueId out_;
  ir::ValueId offset_;
  std::vector<ir::OpId> stores_;
};

TEST_F(Replay, TheFolderAgrees) {
  for (const Case& c : cases()) {
    const std::vector<Column> inputs = inputs_for(c);
    const Column* const expected = recorded(c, inputs);
    if (expected == nullptr) continue;
    constexpr size_t kPerKernel = 512;
    Mistakes mistakes("fold");
    for (size_t at = 0; at < expected->size(); at += kPerKernel * (HEDDLE_SANITIZED ? 4 : 1)) {
      const size_t end = std::min(expected->size(), at + kPerKernel);
      ConstantKernel kernel(c);
      for (size_t i = at; i < end; ++i) kernel.add(tuple_of(inputs, i));
      const std::vector<std::optional<uint64_t>> results = kernel.folded();
      for (size_t i = at; i < end; ++i) {
        const std::optional<uint64_t> result = results[i - at];
        const Column tuple = tuple_of(inputs, i);
        if (result && !is_folded(c)) {
          mistakes.add(c, tuple, "a constant, but must not be folded");
        } else if (result) {
          mistakes.check(c, tuple, (*expected)[i], *result);
        } else if (is_folded(c) && !is_unspecified(c, tuple) && !is_nan(c.result, (*expected)[i])) {
          mistakes.add(
              c, tuple,
              absl::StrCat("no constant; recorded was ", describe(c.result, (*expected)[i])));
        }
      }
    }
  }
}

// A row that no case covers would pass unseen.
TEST(Cases, CoverEveryRowAndType) {
  std::set<std::pair<ir::Opcode, ir::Scalar>> covered;
  std::set<std::string> names;
  for (const Case& c : cases()) {
    covered.emplace(c.opcode, working_type(c));
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
  }
  for (const ir::Opcode opcode : recorded_ops()) {
    const ir::OpInfo& row = ir::info(opcode);
    const bool any = std::any_of(covered.begin(), covered.end(),
                                 [&](const auto& entry) { return entry.first == opcode; });
    EXPECT_TRUE(any) << row.mnemonic << " has no case";
    if (row.signature.operands[0].role == ir::Role::kDataLikeT) continue;
    for (int i = 0; i < ir::kScalarCount; ++i) {
      const auto scalar = static_cast<ir::Scalar>(i);
      const bool has_type =
          admits(row.data_class, scalar) && supports(ir::default_target(), row.targets, scalar);
      EXPECT_TRUE(!has_type || covered.count({opcode, scalar}) == 1)
          << row.mnemonic << " has no case of " << ir::info(scalar).name;
    }
  }
}

TEST(Cases, SweepOverAllInputsOf16Bits) {
  int sweeps = 0;
  for (const Case& c : cases()) {
    if (c.operands.size() != 1 || ir::info(c.operands[0]).bits != 16) continue;
    std::vector<Column> inputs = inputs_for(c);
    std::sort(inputs[0].begin(), inputs[0].end());
    inputs[0].erase(std::unique(inputs[0].begin(), inputs[0].end()), inputs[0].end());
    EXPECT_EQ(inputs[0].size(), 65536u) << c.name;
    ++sweeps;
  }
  EXPECT_GE(sweeps, 60);  // four types convert to each of fifteen
}

TEST(Recordings, ReadBackAsWritten) {
  Case c;
  c.operands = {ir::Scalar::kI16};
  for (const ir::Scalar result :
       {ir::Scalar::kBool, ir::Scalar::kF16, ir::Scalar::kI32, ir::Scalar::kF64}) {
    c.result = result;
    c.name = absl::StrCat("made up -> ", ir::info(result).name);
    const uint64_t all = ~uint64_t{0} >> (64 - ir::info(result).bits);
    for (const Column& results :
         {Column{}, Column{7}, Column{0, all, all, 0, all / 2, all / 2 + 1, 64, 0, 63, 31, 0},
          Column(1000, all), Column{1, 2, 3, 4, 5, 5, 5, 5}}) {
      Recording before;
      before.device = "a, b";
      before.cases[c.name] = {0xFEDCBA9876543210, results};
      const std::string text = to_text(before, {&c, 1});
      const StatusOr<Recording> after = parse_recording(text, {&c, 1});
      ASSERT_TRUE(after.ok()) << after.status();
      EXPECT_EQ(after->device, before.device);
      EXPECT_EQ(after->cases.at(c.name).inputs, 0xFEDCBA9876543210);
      EXPECT_EQ(after->cases.at(c.name).results, results);
      EXPECT_FALSE(parse_recording(text.substr(0, text.size() - 2), {&c, 1}).ok());
      EXPECT_FALSE(parse_recording(text, {}).ok());
    }
  }
}

TEST(Comparison, TellsWrongResults) {
  Case add;
  add.opcode = ir::Opcode::kAdd;
  add.operands = {ir::Scalar::kF32, ir::Scalar::kF32};
  add.result = ir::Scalar::kF32;
  EXPECT_EQ(complaint(add, {0, 0}, 0, 0), "");
  EXPECT_EQ(complaint(add, {0, 0}, 0x7FFFFFFF, 0xFFC00000), "") << "some NaN";
  EXPECT_NE(complaint(add, {0, 0}, 0, 0x80000000), "") << "-0 is not 0";
  EXPECT_NE(complaint(add, {0, 0}, 0x7F800000, 0x7FFFFFFF), "");
  Case neg = add;
  neg.opcode = ir::Opcode::kNeg;
  EXPECT_NE(complaint(neg, {0}, 0x7FFFFFFF, 0xFFC00000), "") << "the bits pass through";
  Case exp2 = neg;
  exp2.opcode = ir::Opcode::kExp2;
  const uint64_t one = 0x3F800000;
  for (const uint64_t near : {one - 2, one, one + 2})
    EXPECT_EQ(complaint(exp2, {0}, one, near), "");
  for (const uint64_t far : {one - 5, one + 3, uint64_t{0x7FC00000}}) {
    EXPECT_NE(complaint(exp2, {0}, one, far), "");
  }
  EXPECT_NE(complaint(exp2, {0x7F800000}, 0x7F800000, 0x7F7FFFFF), "");
  EXPECT_NE(complaint(exp2, {0x7FC00000}, 0x7FC00000, one), "");
}

}  // namespace
}  // namespace heddle::vectors
