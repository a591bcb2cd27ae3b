// What passes declare and what the manager makes of it: options, levels, places, targets, properties, analyses.
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/passes/pipeline_text.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Kernel loop() {
  return parse_body("32, 1, 1", "%x: view<f32, global, 1> [?] strides [1], %n: i32", R"(
    %zero = const 0 : i32
    %one = const 1 : i32
    %two = const 2.0 : f32
    for %i in %zero .. %n step %one {
      %v = load %x, %i : f32
      %w = mul %v, %two : f32
      store %x, %w, %i
      yield
    }
)");
}

std::vector<std::string> names_of(const PassRegistry& registry, absl::string_view text) {
  std::vector<std::string> names;
  const auto steps = parse_pipeline(registry, text);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  for (const PipelineStep& step : *steps) names.emplace_back(step.pass->name);
  return names;
}

std::string refusal(absl::string_view text) {
  Kernel kernel = loop();
  const Status status = run_pipeline(kernel, text);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(status.message());
}

int count(const Kernel& kernel, Opcode opcode) {
  int found = 0;
  kernel.walk([&](OpId id) { found += kernel.op(id).opcode == opcode; });
  return found;
}

TEST(PassOptions, AreNumbersBetweenBraces) {
  Kernel kernel = loop();
  ASSERT_TRUE(run_pipeline(kernel, " unroll{ factor = 3 } ,dce", {.verify_each = true}).ok());
  EXPECT_EQ(count(kernel, Opcode::kLoad), 4);  // three in a round, and one of those that are left
  Kernel plain = loop();
  ASSERT_TRUE(run_pipeline(plain, "unroll,unroll{}").ok());
  EXPECT_EQ(print(plain), print(loop()));
}

TEST(PassOptions, HaveARange) {
  PassRegistry registry;
  EXPECT_EQ(
      registry
          .add({.name = "mine",
                .summary = "",
                .run = [](Kernel&) { return false; },
                .options = {{"most", 5, 9, 3, ""}}})
          .message(),
      "option 'most' of pass 'mine' can have no value: its least, 9, is more than its most, 3");
}

TEST(PassOptions, EachIsRefusedByName) {
  EXPECT_EQ(refusal("unroll{factr=4}"),
            "pass 'unroll' has no option 'factr'; did you mean 'factor'? in pipeline "
            "'unroll{factr=4}'");
  EXPECT_EQ(
      refusal("unroll{factor=65}"),
      "option 'factor' of pass 'unroll' takes a number from 1 to 64, and 'factor=65' has none "
      "in pipeline 'unroll{factor=65}'");
  EXPECT_THAT(refusal("unroll{factor}"), HasSubstr("'factor' has none"));
  EXPECT_THAT(refusal("unroll{factor=0}"), HasSubstr("'factor=0' has none"));
  EXPECT_EQ(refusal("fold{x=1}"), "pass 'fold' takes no options in pipeline 'fold{x=1}'");
  EXPECT_EQ(refusal("unroll{factor=4"),
            "'unroll{factor=4' lacks a '}' at its end in pipeline 'unroll{factor=4'");
  EXPECT_EQ(refusal("O2{x=1}"), "the level O2 takes no options in pipeline 'O2{x=1}'");
}

TEST(Levels, StandForTheirPasses) {
  const PassRegistry registry;
  for (const PipelineLevel& level : pipeline_levels()) {
    EXPECT_EQ(names_of(registry, level.name), names_of(registry, level.passes)) << level.name;
    Kernel kernel = loop();
    EXPECT_TRUE(run_pipeline(kernel, level.name, {.verify_each = true}).ok()) << level.name;
    EXPECT_TRUE(verify(kernel, Stage::kEmittable).empty()) << level.name;
  }
  EXPECT_THAT(names_of(registry, "O0,dce"), ElementsAre("promote-vars", "dce"));
}

TEST(Levels, LeaveOutPasses) {
  const PassRegistry registry;
  EXPECT_THAT(names_of(registry, "O1,-dce"), ElementsAre("promote-vars", "unroll", "fold", "cse"));
  EXPECT_THAT(names_of(registry, "O1,- fold,-dce,fold"),
              ElementsAre("promote-vars", "unroll", "cse", "fold"));
  EXPECT_EQ(refusal("O0,-dce"), "nothing in front of '-dce' runs pass 'dce' in pipeline 'O0,-dce'");
  EXPECT_EQ(refusal("-dce,O1"), "nothing in front of '-dce' runs pass 'dce' in pipeline '-dce,O1'");
  EXPECT_EQ(refusal("O1,-unroll{factor=2}"),
            "'-unroll' takes no options in pipeline 'O1,-unroll{factor=2}'");
  EXPECT_THAT(refusal("O1,-unrol"), HasSubstr("unknown pass 'unrol' in pipeline 'O1,-unrol'"));
}

TEST(PlacedPasses, StandBesideTheirAnchorsInLevels) {
  PassRegistry registry;
  const auto nothing = [](Kernel&) { return false; };
  ASSERT_TRUE(registry.add({.name = "behind", .summary = "", .run = nothing, .after = "dce"}).ok());
  ASSERT_TRUE(registry.add({.name = "front", .summary = "", .run = nothing, .before = "dce"}).ok());
  EXPECT_THAT(names_of(registry, "O1"), ElementsAre("promote-vars", "unroll", "fold", "front",
                                                    "dce", "cse", "dce", "behind"));
  EXPECT_THAT(names_of(registry, "O0"), ElementsAre("promote-vars"));
  EXPECT_THAT(names_of(registry, "fold,dce"), ElementsAre("fold", "dce"));
  // Several beside one pass stand in the order of registration.
  ASSERT_TRUE(registry.add({.name = "more", .summary = "", .run = nothing, .after = "dce"}).ok());
  EXPECT_THAT(names_of(registry, "O1"), ElementsAre("promote-vars", "unroll", "fold", "front",
                                                    "dce", "cse", "dce", "behind", "more"));
  for (const absl::string_view taken : {"O2", "all", "-dce"}) {
    EXPECT_THAT(std::string(registry.add({.name = taken, .summary = "", .run = nothing}).message()),
                HasSubstr("which has a meaning of its own in pipelines"));
  }
  EXPECT_EQ(
      registry.add({.name = "lost", .summary = "", .run = nothing, .after = "dcee"}).message(),
      "pass 'lost' names the pass 'dcee', which nobody has registered; did you mean 'dce'?");
  EXPECT_THAT(
      std::string(
          registry
              .add({.name = "two", .summary = "", .run = nothing, .after = "dce", .before = "fold"})
              .message()),
      HasSubstr("both an after and a before"));
}

TEST(PlacedPasses, CannotStandBesideThemselvesOrEachOther) {
  const auto nothing = [](Kernel&) { return false; };
  PassRegistry registry;
  EXPECT_EQ(
      registry.add({.name = "self", .summary = "", .run = nothing, .after = "self"}).message(),
      "pass 'self' names itself in after or before; name another");
  const RegisteredPass egg({.name = "egg", .summary = "", .run = nothing, .after = "hen"});
  const RegisteredPass hen({.name = "hen", .summary = "", .run = nothing, .before = "egg"});
  Kernel kernel = loop();
  EXPECT_EQ(run_pipeline(kernel, "fold").message(),
            "the passes 'egg', 'hen' have no place, because each is to run after or before another "
            "of them; let one name a pass that is none of these");
}

TEST(PassTargets, OthersLeaveItOut) {
  PassRegistry registry;
  int runs = 0;
  const auto note = [&](Kernel&) { return ++runs < 0; };
  ASSERT_TRUE(
      registry.add({.name = "hopper", .summary = "", .run = note, .targets = {"sm_90a"}}).ok());
  PipelineReport report;
  Kernel kernel = loop();
  kernel.target = find_target("sm_80");
  ASSERT_TRUE(run_pipeline(kernel, "hopper", {.registry = &registry, .report = &report}).ok());
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(report.passes[0].skipped);
  kernel.target = find_target("sm_90a");
  ASSERT_TRUE(run_pipeline(kernel, "hopper", {.registry = &registry}).ok());
  EXPECT_EQ(runs, 1);
  // What it gives, it does not give where it is left out.
  ASSERT_TRUE(registry
                  .add({.name = "promote",
                        .summary = "",
                        .run = note,
                        .gives = {kNoVariables},
                        .targets = {"sm_90a"}})
                  .ok());
  Kernel slots = parse_body("32, 1, 1", "%x: view<i32, global, 1> [?] strides [1], %n: i32", R"(
    %s = var %n : var<i32>
    %v = var.load %s : i32
    store %x, %v, %n
)");
  slots.target = find_target("sm_80");
  EXPECT_THAT(std::string(run_pipeline(slots, "promote,licm", {.registry = &registry}).message()),
              HasSubstr("pass 'licm' needs a kernel without variables"));
  EXPECT_THAT(
      std::string(registry.add({.name = "odd", .summary = "", .run = note, .targets = {"sm_91"}})
                      .message()),
      HasSubstr("pass 'odd' is for the target 'sm_91', but Heddle knows sm_80"));
}

TEST(Properties, OfAProgramsOwnAreCheckedWhereTheyShouldHold) {
  PassRegistry registry;
  const auto stores = [](const Kernel& kernel) -> Diagnostics {
    if (count(kernel, Opcode::kStore) == 0) return {};
    return {{.place = {}, .message = "there is a store", .notes = {}, .fix = "", .op = ""}};
  };
  ASSERT_TRUE(
      registry
          .add(Property{.name = "silent", .says = "a kernel that stores nothing", .check = stores})
          .ok());
  const auto nothing = [](Kernel&) { return false; };
  ASSERT_TRUE(
      registry.add({.name = "wants", .summary = "", .run = nothing, .needs = {"silent"}}).ok());
  ASSERT_TRUE(
      registry.add({.name = "boasts", .summary = "", .run = nothing, .gives = {"silent"}}).ok());
  Kernel kernel = loop();
  EXPECT_EQ(run_pipeline(kernel, "wants", {.registry = &registry}).message(),
            "pass 'wants' needs a kernel that stores nothing, which no pass before it gives; put "
            "'boasts' before it in pipeline 'wants'");
  const Status lie =
      run_pipeline(kernel, "boasts,wants", {.registry = &registry, .verify_each = true});
  EXPECT_EQ(lie.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(lie.message()), HasSubstr("after 'boasts'"));
  EXPECT_THAT(std::string(lie.message()), HasSubstr("there is a store"));
  EXPECT_EQ(
      registry.add({.name = "typo", .summary = "", .run = nothing, .needs = {"silnt"}}).message(),
      "pass 'typo' names the property 'silnt', which nobody has registered; did you mean "
      "'silent'?");
  EXPECT_THAT(
      std::string(registry.add(Property{.name = "idle", .says = "", .check = nullptr}).message()),
      HasSubstr("set Property::check"));
}

// Counts how often it is made.
struct Counted {
  static constexpr absl::string_view kName = "counted";
  static inline int made = 0;
  explicit Counted(Analyses& analyses) : ints(analyses.get<Ints>()) { ++made; }
  IntAnalysis& ints;
};

TEST(Analyses, AreSharedUntilAPassThatDoesNotKeepThemChangesTheKernel) {
  PassRegistry registry;
  const auto ask = [](PassContext& context) {
    context.analysis<Counted>();
    return false;
  };
  const auto ask_and_change = [](PassContext& context) {
    context.analysis<Counted>();
    Builder builder(context.kernel());
    builder.set_insertion_before(*context.kernel().ops(context.kernel().body()).begin());
    builder.constant(Type::of(Scalar::kI32), 7);
    return true;
  };
  ASSERT_TRUE(registry.add({.name = "ask", .summary = "", .run = ask}).ok());
  ASSERT_TRUE(registry.add({.name = "change", .summary = "", .run = ask_and_change}).ok());
  ASSERT_TRUE(registry
                  .add({.name = "keep",
                        .summary = "",
                        .run = ask_and_change,
                        .keeps = {Counted::kName, Ints::kName}})
                  .ok());
  // Without what it builds on it goes too.
  ASSERT_TRUE(
      registry
          .add({.name = "half", .summary = "", .run = ask_and_change, .keeps = {Counted::kName}})
          .ok());
  const auto made_by = [&](absl::string_view passes) {
    Kernel kernel = loop();
    Counted::made = 0;
    EXPECT_TRUE(run_pipeline(kernel, passes, {.registry = &registry}).ok());
    return Counted::made;
  };
  EXPECT_EQ(made_by("ask,ask,ask"), 1);
  EXPECT_EQ(made_by("ask,change,ask"), 2);
  EXPECT_EQ(made_by("ask,keep,ask"), 1);
  EXPECT_EQ(made_by("ask,half,ask"), 2);
}

TEST(Analyses, ServeWhoComesBehindThePipeline) {
  Kernel kernel = loop();
  Analyses analyses(kernel);
  ASSERT_TRUE(run_pipeline(kernel, "licm,cse", {.analyses = &analyses}).ok());
  EXPECT_TRUE(analyses.has(Aliasing::kName));
  EXPECT_FALSE(analyses.has(Uniformity::kName));
  ASSERT_TRUE(run_pipeline(kernel, "unroll{factor=2}", {.analyses = &analyses}).ok());
  EXPECT_FALSE(analyses.has(Aliasing::kName));
}

TEST(Analyses, KnowNothingOfWhatIsNewer) {
  Kernel kernel = loop();
  const Uniformity uniformity(kernel);
  Builder builder(kernel);
  builder.set_insertion_before(*kernel.ops(kernel.body()).begin());
  const ValueId lane = builder.create(Opcode::kLaneId, {});
  EXPECT_EQ(uniformity.of(lane), Scope::kThread);
  EXPECT_EQ(uniformity.of(kernel.params()[1].value), Scope::kGrid);
}

// What vectorize found out of sums is about ops that contract makes others of.
TEST(Analyses, OfSumsGoWithTheValuesInThem) {
  constexpr absl::string_view kBody = R"(
    %zero = const 0 : i32
    %one = const 1 : i32
    for %i in %zero .. %n step %one {
      %m = mul %n, %n : i32
      %o = add %m, %i : i32
      %v = load %x, %o : f32
      %w = mul %v, %v : f32
      store %x, %w, %o
      yield
    }
)";
  for (const absl::string_view passes :
       {"vectorize,contract,widen-loops", "vectorize,cse,widen-loops",
        "vectorize,licm,widen-loops"}) {
    Kernel kernel =
        parse_body("32, 1, 1", "%x: view<f32, global, 1> [?] strides [1], %n: i32", kBody);
    const Status status = run_pipeline(kernel, passes, {.verify_each = true});
    EXPECT_TRUE(status.ok()) << passes << ": " << status.message();
  }
}

Kernel liars_kernel() {
  return parse_body("64, 1, 1",
                    "%x: view<i32, global, 1> [?] strides [1], "
                    "%y: view<i32, global, 1> [?] strides [1]",
                    R"(
    %t = thread_idx {axis = x} : i32
    %two = const 2 : i32
    %s = shared {extents = [64]} : view<i32, shared, 1>
    %a = add %two, %two : i32
    %b = add %two, %a : i32
    %v = load %s, %b : i32
    store %x, %v, %t
)");
}
Status run_liar(absl::string_view name, std::function<StatusOr<bool>(PassContext&)> run) {
  PassRegistry registry;
  EXPECT_TRUE(registry
                  .add({.name = name,
                        .summary = "",
                        .run = std::move(run),
                        .keeps = {Aliasing::kName, Uniformity::kName, Ints::kName}})
                  .ok());
  Kernel kernel = liars_kernel();
  return run_pipeline(kernel, name, {.registry = &registry, .verify_each = true});
}
OpId first(const Kernel& kernel, Opcode opcode) {
  OpId found = OpId::kNone;
  kernel.walk([&](OpId id) {
    if (!valid(found) && kernel.op(id).opcode == opcode) found = id;
  });
  return found;
}

// What a pass of a program does wrong ends the pipeline where nobody asks for verification too.
TEST(ForeignPasses, AreHeldToTheirWord) {
  const auto said = [](auto run) {
    PassRegistry registry;
    EXPECT_TRUE(
        registry
            .add({.name = "mine", .summary = "", .run = run, .options = {{"most", 1, 0, 9, ""}}})
            .ok());
    Kernel kernel = loop();
    return std::string(
        run_pipeline(kernel, "promote-vars,mine,O3", {.registry = &registry}).message());
  };
  // A value that is used, and nothing computes.
  for (const bool says_so : {false, true}) {
    EXPECT_THAT(said([&](Kernel& kernel) {
                  kernel.erase(first(kernel, Opcode::kLoad));
                  return says_so;
                }),
                HasSubstr("after 'mine'"));
  }
  EXPECT_THAT(said([&](Kernel& kernel) {
                kernel.op(first(kernel, Opcode::kStore))
                    .set_operand(OperandName::kView, static_cast<ValueId>(1 << 20));
                return true;
              }),
              HasSubstr("after 'mine'"));
  EXPECT_THAT(said([&](Kernel& kernel) {
                Op& op = kernel.op(first(kernel, Opcode::kLoad));
                op.set_operand(OperandName::kOffset, op.result());
                return true;
              }),
              HasSubstr("after 'mine'"));
  EXPECT_EQ(said([](Kernel&) -> bool { throw std::runtime_error("boom"); }),
            "pass 'mine': it has thrown an exception, 'boom'; return a Status from Pass::run");
  EXPECT_EQ(said([](Kernel&) -> bool { throw 3; }),
            "pass 'mine': it has thrown an exception; return a Status from Pass::run");
  EXPECT_EQ(said([](PassContext& context) { return context.option("mots") > 0; }),
            "pass 'mine': it asks for its option 'mots', which Pass::options does not declare; it "
            "declares most");
  EXPECT_EQ(said([](Kernel&) -> StatusOr<bool> { return InvalidArgumentError("no such kernel"); }),
            "pass 'mine': no such kernel");
}

// Tables of values would be too short for those that it has made; --verify sees any other change.
TEST(ForeignPasses, MayNotHideNewValues) {
  PassRegistry registry;
  ASSERT_TRUE(registry
                  .add({.name = "silent",
                        .summary = "",
                        .run =
                            [](Kernel& kernel) {
                              Builder builder(kernel);
                              builder.set_insertion_before(first(kernel, Opcode::kAdd));
                              builder.constant_int(kI32Type, 7);
                              return false;
                            }})
                  .ok());
  Kernel kernel = liars_kernel();
  EXPECT_EQ(
      run_pipeline(kernel, "silent,dce", {.registry = &registry}).message(),
      "pass 'silent' changed kernel 'test' and says that it did not; return true from Pass::run");
}

// A property that a pass of a program ends without saying so: an error where a later pass needs it.
TEST(ForeignPasses, EndWhatLaterPassesNeed) {
  bool holds = true;
  PassRegistry registry;
  ASSERT_TRUE(registry
                  .add(Property{.name = "told",
                                .says = "a kernel of which it is told",
                                .check =
                                    [&](const Kernel&) {
                                      Diagnostics wrong;
                                      if (!holds) {
                                        wrong.push_back({.place = {},
                                                         .message = "it is not told",
                                                         .notes = {},
                                                         .fix = {},
                                                         .op = {}});
                                      }
                                      return wrong;
                                    }})
                  .ok());
  const auto sets = [&](bool value) {
    return [&holds, value](Kernel&) {
      holds = value;
      return false;
    };
  };
  ASSERT_TRUE(registry.add({.name = "ends", .summary = "", .run = sets(false)}).ok());
  ASSERT_TRUE(
      registry.add({.name = "gives", .summary = "", .run = sets(true), .gives = {"told"}}).ok());
  ASSERT_TRUE(registry
                  .add({.name = "needs",
                        .summary = "",
                        .run = [](Kernel&) { return false; },
                        .needs = {"told"}})
                  .ok());
  const auto said = [&](absl::string_view passes) {
    Kernel kernel = loop();
    return std::string(run_pipeline(kernel, passes, {.registry = &registry}).message());
  };
  EXPECT_EQ(said("gives,needs,ends"), "");
  EXPECT_EQ(said("gives,ends,gives,needs"), "");
  EXPECT_THAT(said("gives,ends,needs"),
              AllOf(HasSubstr("kernel 'test' after 'ends'"), HasSubstr("it is not told"),
                    HasSubstr("a later pass needs what the pass has not said that it breaks")));
  // What a pass says that it gives must hold behind it.
  ASSERT_TRUE(
      registry.add({.name = "lies", .summary = "", .run = sets(false), .gives = {"told"}}).ok());
  EXPECT_THAT(said("lies"), HasSubstr("Pass::gives says that this holds"));
  // Where the later pass does not run, nothing is wrong.
  Kernel kernel = loop();
  EXPECT_TRUE(
      run_pipeline(kernel, "gives,ends,needs", {.registry = &registry, .stop_after = "ends"}).ok());
  EXPECT_TRUE(
      run_pipeline(kernel, "gives,ends,needs", {.registry = &registry, .pass_limit = 2}).ok());
}

TEST(Verification, FindsPassesThatDeclareWhatIsNot) {
  const Status silent = run_liar("silent", [](Kernel& kernel) {
    kernel.op(first(kernel, Opcode::kAdd))
        .set_operand(OperandName::kA, kernel.op(first(kernel, Opcode::kThreadIdx)).result());
    return false;
  });
  EXPECT_EQ(silent.code(), StatusCode::kInternal);
  EXPECT_EQ(
      silent.message(),
      "pass 'silent' changed kernel 'test' and says that it did not; return true from Pass::run");
  const Status ints = run_liar("ints", [](PassContext& context) {
    Kernel& kernel = context.kernel();
    Op& add = kernel.op(first(kernel, Opcode::kAdd));
    context.analysis<Ints>().range(add.result());
    add.opcode = Opcode::kSub;
    return true;
  });
  EXPECT_EQ(ints.code(), StatusCode::kInternal);
  EXPECT_THAT(
      std::string(ints.message()),
      HasSubstr("pass 'ints' keeps an analysis of kernel 'test' that no longer holds: ints "
                "says that '%a = sub %two, %two : i32' gives 4 to 4, where it gives 0 to 0"));
  const Status uniform = run_liar("uniform", [](PassContext& context) {
    Kernel& kernel = context.kernel();
    context.analysis<Uniformity>();
    kernel.op(first(kernel, Opcode::kAdd))
        .set_operand(OperandName::kA, kernel.op(first(kernel, Opcode::kThreadIdx)).result());
    return true;
  });
  EXPECT_THAT(std::string(uniform.message()),
              HasSubstr("uniformity says that threads of one grid agree on '%a = add %t, %two"));
  const Status aliasing = run_liar("aliasing", [](PassContext& context) {
    Kernel& kernel = context.kernel();
    context.analysis<Aliasing>();
    kernel.op(first(kernel, Opcode::kStore))
        .set_operand(OperandName::kView, kernel.params()[1].value);
    return true;
  });
  EXPECT_THAT(std::string(aliasing.message()),
              HasSubstr("aliasing says that nobody writes the memory of 'store %y"));
}

// Ranges that are kept may say more than new ones do, of an op that was another; and so may what follows from them.
TEST(Verification, BelievesWhatFollowsFromAnalysesThatAreKept) {
  const Status status = run_liar("keeper", [](PassContext& context) {
    Kernel& kernel = context.kernel();
    Builder b(kernel);
    b.set_insertion_before(first(kernel, Opcode::kStore));
    const ValueId thread = kernel.op(first(kernel, Opcode::kThreadIdx)).result();
    const ValueId bit =
        b.create(Opcode::kAnd, {thread, kernel.op(first(kernel, Opcode::kConst)).result()});
    const ValueId zero = b.create(Opcode::kShr, {bit, b.constant_int(Type::of(Scalar::kU32), 2)});
    EXPECT_TRUE(context.analysis<Ints>().range(zero).is_constant());
    kernel.op(kernel.value(bit).def).opcode = Opcode::kXor;
    EXPECT_EQ(context.analysis<Uniformity>().of(zero), Scope::kGrid);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(RegisteredPasses, RunInWhateverIsCompiledWhileTheyLive) {
  int runs = 0;
  const auto run = [&] {
    Kernel kernel = loop();
    EXPECT_TRUE(run_pipeline(kernel, kDefaultLevel).ok());
    return runs;
  };
  EXPECT_EQ(run(), 0);
  {
    // Each before what it names is there.
    const RegisteredPass second({.name = "second",
                                 .summary = "",
                                 .run = [&](Kernel&) { return ++runs < 0; },
                                 .needs = {"told"},
                                 .after = "first"});
    const RegisteredPass pass({.name = "first",
                               .summary = "",
                               .run = [](Kernel&) { return false; },
                               .gives = {"told"},
                               .after = "vectorize"});
    const RegisteredPass property(Property{.name = "told",
                                           .says = "a kernel of which it is told",
                                           .check = [](const Kernel&) { return Diagnostics{}; }});
    EXPECT_EQ(run(), 1);
  }
  EXPECT_EQ(run(), 1);
  const RegisteredPass wrong(
      {.name = "lost", .summary = "", .run = [](Kernel&) { return false; }, .after = "nothing"});
  Kernel kernel = loop();
  const Status status = run_pipeline(kernel, "fold");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'lost' names the pass 'nothing'"));
  // Not that of one that waits for it.
  const RegisteredPass waits(
      {.name = "waits", .summary = "", .run = [](Kernel&) { return false; }, .before = "lost"});
  EXPECT_EQ(run_pipeline(kernel, "fold"), status);
}

TEST(Changes, AreTold) {
  std::vector<std::string> told;
  const auto note = [&](const PassRun& run, absl::string_view before, absl::string_view after) {
    told.push_back(run.name);
    EXPECT_NE(before, after);
    EXPECT_THAT(std::string(before), HasSubstr("%zero."));  // by its id
  };
  Kernel kernel = loop();
  ASSERT_TRUE(run_pipeline(kernel, "unroll{factor=2},contract,cse", {.on_change = note}).ok());
  EXPECT_THAT(told, ElementsAre("unroll", "cse"));
}

}  // namespace
}  // namespace heddle::ir
