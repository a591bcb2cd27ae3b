#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/tools/command/explain/explanation.h"
#include "nlohmann/json.hpp"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const Outcome& transpose_as_text() {
  static const auto* const outcome =
      new Outcome(heddle_command({"explain", "padded_transpose", "--arch", "sm_90a"}));
  return *outcome;
}
nlohmann::json explained(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "explain");
  arguments.insert(arguments.end(), {"--arch", "sm_90a", "--json"});
  const Outcome outcome = heddle_command(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

TEST(ExplainTest, ShowsEachLine) {
  EXPECT_EQ(transpose_as_text().exit_code, 0) << transpose_as_text().err;
  EXPECT_THAT(transpose_as_text().out,
              AllOf(HasSubstr("kernel transpose for sm_90a"), HasSubstr("values live at once: "),
                    HasSubstr("02_transpose.h\n"), HasSubstr("Int row = block_idx.y * kTile"),
                    HasSubstr("4 × store.shared: 4 bytes a lane, 1 bank round\n"),
                    HasSubstr("4 × load.global: 4 bytes a lane, 4 sectors\n")));
}

TEST(ExplainTest, CountsWhatALineBecame) {
  const nlohmann::json json = explained({"row_sum"});
  EXPECT_EQ(json["kernel"], "row_sum");
  int ir = 0, ptx = 0, sass = 0, in_loops = 0, changes = 0;
  for (const auto& line : json["lines"]) {
    ir += line["ir"].get<int>();
    ptx += line["ptx"].get<int>();
    sass += line["sass"].get<int>();
    in_loops += line["loops"].get<int>() > 0 ? 1 : 0;
    changes += static_cast<int>(line["changes"].size());
    EXPECT_LE(line["live"], json["live_registers"]);
  }
  EXPECT_GT(in_loops, 0);
  EXPECT_GT(changes, 5);
  int rows = 0;
  for (const auto& row : json["rows"]["ir"]) {
    rows += row["line"] >= 0 && row["text"].get<std::string>().rfind("yield", 0) != 0 ? 1 : 0;
  }
  EXPECT_EQ(ir, rows);
  EXPECT_GT(ptx, 50);
  if (json["rows"]["sass"].empty()) return;  // without ptxas or a disassembler
  int mix = 0;
  for (const auto& [kind, count] : json["mix"].items()) mix += count.get<int>();
  EXPECT_EQ(mix, static_cast<int>(json["rows"]["sass"].size()));
  EXPECT_GT(sass, 50);
  EXPECT_FALSE(json["mix"].contains("other"));
}

TEST(ExplainTest, NamesThePassesThatChangedALine) {
  const auto passes = [](const nlohmann::json& json) {
    std::set<std::string> names;
    for (const auto& line : json["lines"]) {
      for (const auto& change : line["changes"]) names.insert(change["pass"]);
    }
    return names;
  };
  EXPECT_THAT(passes(explained({"saxpy"})), Contains("contract"));
  EXPECT_THAT(passes(explained({"saxpy", "--passes", "promote-vars,dce"})),
              Not(Contains("contract")));
}

TEST(ExplainTest, WritesAPage) {
  const TempDir dir;
  const std::string file = dir.file("page.html");
  const Outcome outcome = heddle_command({"explain", "padded_transpose", "--html", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string page = slurp(file);
  EXPECT_THAT(
      page, AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr("const data = {"), HasSubstr("mouseover"),
                  Not(HasSubstr("HEDDLE_DATA")), Not(HasSubstr("http"))));
  // What the kernel is made of cannot end the script.
  const size_t script = page.find("<script>");
  EXPECT_EQ(page.find("</", script), page.find("</script>"));
}

TEST(ExplainTest, SaysWhatIsWrong) {
  expect_misused(heddle_command({"explain", "transpoes"}), HasSubstr("transpose"));
  expect_misused(heddle_command({"explain", "padded_transpose", "--arch", "sm_1"}),
                 HasSubstr("unknown target 'sm_1'"));
  expect_misused(heddle_command({"explain", "padded_transpose", "--html", "/nowhere/page.html"}),
                 HasSubstr("/nowhere/page.html"));
  expect_misused(heddle_command({"explain", "padded_transpose", "--passes", "flod"}),
                 HasSubstr("fold"));
}

TEST(ExplainTest, KnowsKindsOfInstructions) {
  EXPECT_EQ(kind_of_sass("HGMMA.64x256x16.F32"), "tensor cores");
  EXPECT_EQ(kind_of_sass("LDG.E.128"), "global memory");
  EXPECT_EQ(kind_of_sass("LDGSTS.E.BYPASS"), "global memory");
  EXPECT_EQ(kind_of_sass("LDC.64"), "moves");
  EXPECT_EQ(kind_of_sass("ULDC.64"), "moves");
  EXPECT_EQ(kind_of_sass("LDSM.16.M88.4"), "shared memory");
  EXPECT_EQ(kind_of_sass("STL.64"), "local memory");
  EXPECT_EQ(kind_of_sass("UIADD3"), "integers");
  EXPECT_EQ(kind_of_sass("IMAD.MOV.U32"), "moves");
  EXPECT_EQ(kind_of_sass("IMAD.WIDE"), "integers");
  EXPECT_EQ(kind_of_sass("FSETP.GT.AND"), "floats");
  EXPECT_EQ(kind_of_sass("WARPSYNC.ALL"), "synchronisation");
  EXPECT_EQ(kind_of_sass("QUUX"), "other");
}

}  // namespace
}  // namespace heddle::tools
