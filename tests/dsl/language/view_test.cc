// Views record offsets, bounds and the facts that they lean on.
#include <string>

#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::Not;

bool read_fact(const ir::Kernel& kernel, ir::FactKind kind, int param) {
  for (const ir::Guard& guard : kernel.facts_read()) {
    if (guard.fact.kind == kind && guard.fact.param == param) return true;
  }
  return false;
}

TEST(ViewTest, AnAccessKeepsItsViewAndItsBounds) {
  const auto kernel = define_kernel("copy(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
    y(block_idx.x, thread_idx.x) = x(block_idx.x, thread_idx.x);
  });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, HasSubstr("bounds %x, "));
  EXPECT_THAT(text, HasSubstr("load %x, "));
  EXPECT_THAT(text, HasSubstr("bounds %y, "));
  EXPECT_THAT(text, HasSubstr("store %y, "));
}

TEST(ViewTest, OnlyFactsThatWereAskedForAreGuards) {
  const auto kernel = define_kernel(
      "facts(x, y)",
      [](Tensor<const float, 2> x, Tensor<float, 1> y) { y(0) = x(0, thread_idx.x); });
  const ir::Kernel k = trace(kernel).kernel;
  EXPECT_TRUE(read_fact(k, ir::FactKind::kUnitStride, 0));
  EXPECT_TRUE(read_fact(k, ir::FactKind::kFits32, 0));
  EXPECT_FALSE(read_fact(k, ir::FactKind::kAlignment, 0));
  EXPECT_FALSE(read_fact(k, ir::FactKind::kNoOverlap, 0));
}

TEST(ViewTest, OffsetsAre64BitWhereTheyMayNotFit) {
  const auto kernel = define_kernel(
      "wide(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) { y(0) = x(5, 7); });
  ir::Specialization specialization = usual_specialization(kernel.source());
  for (ir::Guard& guard : specialization.facts) {
    if (guard.fact.kind == ir::FactKind::kFits32) guard.value = 0;
  }
  const std::string text = ir::print(kernel.source().trace(specialization).kernel);
  EXPECT_THAT(text, HasSubstr("stride %x {dim = 0} : i64"));
  EXPECT_THAT(traced_text(kernel), HasSubstr("stride %x {dim = 0} : i32"));
}

TEST(ViewTest, ShapeNeedsTheExtentToFit) {
  const auto kernel =
      define_kernel("shape(x, y)", [](Tensor<const float, 1> x, Tensor<int64_t, 1> y) {
        y(0) = cast<int64_t>(x.shape(0)) + x.shape64(0);
      });
  ir::Specialization specialization = usual_specialization(kernel.source());
  for (ir::Guard& guard : specialization.facts) {
    if (guard.fact.kind == ir::FactKind::kExtentFits32) guard.value = 0;
  }
  const ir::TraceResult result = kernel.source().trace(specialization);
  ASSERT_EQ(result.diagnostics.size(), 1u) << ir::to_string(result.diagnostics);
  EXPECT_THAT(result.diagnostics[0].message,
              HasSubstr("extent of mode 0 is not known to fit in 31 bits"));
}

TEST(ViewTest, FixedExtentsAreHostNumbers) {
  const auto kernel =
      define_kernel("fixed(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
        for (int i = 0; i < x.fixed_shape(0); ++i) y(i) = x(i);
      });
  ir::Specialization specialization = usual_specialization(kernel.source());
  specialization.facts.push_back({{ir::FactKind::kExtent, 0, 0}, 3});
  const ir::Kernel k = kernel.source().trace(specialization).kernel;
  EXPECT_EQ(count_ops(k, ir::Opcode::kLoad), 3);
  EXPECT_TRUE(read_fact(k, ir::FactKind::kExtent, 0));
  EXPECT_THAT(mistakes(kernel), HasSubstr("extent of mode 0 is not known while tracing"));
}

TEST(ViewTest, VectorAccessIsProvedAligned) {
  const auto good = define_kernel("good(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
    y.vec<4>(thread_idx.x * 4) = x.vec<4>(block_idx.x, thread_idx.x * 4);
  });
  EXPECT_EQ(mistakes(good), "");
  EXPECT_THAT(traced_text(good), HasSubstr("{width = 4}"));

  const int line = __LINE__ + 2;
  const auto bad = define_kernel("bad(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
    y.vec<4>(0) = x.vec<4>(block_idx.x, thread_idx.x * 2);
  });
  const ir::TraceResult result = trace(bad);
  ASSERT_EQ(result.diagnostics.size(), 1u);
  EXPECT_EQ(result.diagnostics[0].place.line, line);
  EXPECT_THAT(result.diagnostics[0].message,
              HasSubstr("multiple of 16 bytes, and only 8 can be proved (the offset)"));
}

TEST(ViewTest, VectorWidthFollowsTheArgument) {
  int width = 0;
  const auto kernel = local_kernel("width(x, y)", [&](Tensor<const half, 2> x, Tensor<float, 1> y) {
    width = x.vector_width();
    y(0) = 0.0f;
  });
  const auto with = [&](ir::FactKind kind, int dim, int64_t value) {
    ir::Specialization specialization = usual_specialization(kernel.source());
    for (ir::Guard& guard : specialization.facts) {
      if (guard.fact.kind == kind && guard.fact.dim == dim && guard.fact.param == 0) {
        guard.value = value;
      }
    }
    kernel.source().trace(specialization);
    return width;
  };
  EXPECT_EQ(with(ir::FactKind::kAlignment, 0, 16), 8);
  EXPECT_EQ(with(ir::FactKind::kAlignment, 0, 4), 2);
  EXPECT_EQ(with(ir::FactKind::kStrideDivisor, 0, 4), 4);
  EXPECT_EQ(with(ir::FactKind::kStrideDivisor, 0, 1), 1);
  EXPECT_EQ(with(ir::FactKind::kUnitStride, 1, 0), 1);
}

TEST(ViewTest, PointersHaveNoBounds) {
  const auto kernel =
      define_kernel("raw(p, n)", [](Pointer<float> p, Int n) { p[n] = p[0] + 1.0f; });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, Not(HasSubstr("bounds")));
  EXPECT_THAT(text, HasSubstr("store %p, "));
}

TEST(ViewTest, SharedMemoryIsRowMajor) {
  const auto kernel = define_kernel("shared(y)", [](Tensor<float, 1> y) {
    Shared<float, 2> tile({4, 33});
    tile(1, 2) = 1.0f;
    Shared<int32_t> list(8);
    list(0) = 5;
    sync_threads();
    y(0) = tile(1, 2) + cast<float>(list(0));
  });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, HasSubstr("extents = [4, 33]"));
  EXPECT_THAT(text, HasSubstr("const 33 : i32"));
}

TEST(ViewTest, StructParametersAreTheirMembers) {
  struct Scale {
    Float factor;
    Int offset;
  };
  const auto kernel = define_kernel("scaled(y, factor, offset)",
                                    [](Tensor<float, 1> y, Scale s) { y(s.offset) = s.factor; });
  ASSERT_EQ(kernel.source().params().size(), 3u);
  EXPECT_EQ(kernel.source().params()[1].name, "factor");
  EXPECT_THAT(traced_text(kernel), HasSubstr("store %y, %factor, %offset"));
}

}  // namespace
}  // namespace heddle
