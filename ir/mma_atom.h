// Atoms of matrix products, as mma_atoms.def lists them: shapes, element types, and which element of its matrix each
// thread's element is.
//
//   const MmaAtom* atom = find_mma_atom({MmaKind::kWgmma, Scalar::kBF16, Scalar::kBF16, Scalar::kF32}, 128, 16);
//   const MmaFragment d = fragment_of(*atom, MmaOperand::kAccumulator, 128);
//   const MmaElement e = d.at(thread, value);          // d's element (e.row, e.column) of 64 x 128
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/target.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

enum class MmaKind : uint8_t {
#define HEDDLE_MMA_KIND(enumerator, ...) enumerator,
#include "heddle/ir/mma_atoms.def"
};

enum class MmaCompletion : uint8_t { kAtOnce, kByGroup };
// Where a and b may be: see mma_atoms.def.
enum class MmaTiles : uint8_t { kRegisters, kSharedB };

struct MmaKindInfo {
  Opcode op{};
  Scope scope = Scope::kThread;
  MmaCompletion completion = MmaCompletion::kAtOnce;
  MmaTiles tiles = MmaTiles::kRegisters;
  absl::string_view ptx;

  // How many threads hold the operands.
  constexpr int threads() const {
    return scope == Scope::kWarpGroup ? 128 : scope == Scope::kWarp ? 32 : 1;
  }
};
const MmaKindInfo& info(MmaKind kind);

// A set of element types.
class ScalarSet {
 public:
  constexpr ScalarSet() = default;
  template <class... Scalars>
  constexpr explicit ScalarSet(Scalars... scalars)
      : bits_(((uint32_t{1} << static_cast<int>(scalars)) | ...)) {}

  constexpr bool contains(Scalar scalar) const {
    return (bits_ >> static_cast<int>(scalar) & 1) != 0;
  }

 private:
  uint32_t bits_ = 0;
};

// Which n a row has.
enum class MmaWidths : uint8_t { kOne, kEight, kEighths, kIntegerWidths };
bool contains(MmaWidths widths, int n);
// "8, 16, …" for messages.
absl::string_view words_of(MmaWidths widths);

enum class MmaMajors : uint8_t { kDepthMajor, kEitherMajor };

struct MmaAtom {
  MmaKind kind{};
  ScalarSet a, b;
  Scalar accumulator = Scalar::kNone;
  int m = 0;
  MmaWidths n{};
  int k = 0;
  MmaMajors majors{};
  Feature feature{};
};
absl::Span<const MmaAtom> mma_atoms();

// The types of a product.
struct MmaTypes {
  MmaKind kind{};
  Scalar a = Scalar::kNone, b = Scalar::kNone, accumulator = Scalar::kNone;

  bool operator==(const MmaTypes&) const = default;
};

// The row for these types and that shape; nullptr where there is none.
const MmaAtom* find_mma_atom(const MmaTypes& types, int n, int k);
// The first row for these types; nullptr where there is none. All rows of wgmma with the same types have the same k.
const MmaAtom* find_mma_atom(const MmaTypes& types);
// What an op, mma or wgmma, multiplies.
struct MmaProduct {
  MmaTypes types;
  int n = 0;
  const MmaAtom* atom =
      nullptr;  // nullptr: there is none of these types, with that n or so many elements
};
MmaProduct product_of(const Kernel& kernel, const Op& op);
// Whether an operand of an atom of that kind may have elements of a type; whether an accumulator may.
bool is_mma_input(MmaKind kind, Scalar scalar);
bool is_mma_accumulator(MmaKind kind, Scalar scalar);
// "f16 x f16 + f32, e4m3 or e5m2 x e4m3 or e5m2 + f32, …": the types of a kind, for messages.
std::string mma_types_text(MmaKind kind);
// "m16n8k8, m16n8k16": the shapes of a kind for these types, for messages; empty where there is none.
std::string mma_shapes_text(const MmaTypes& types);
// "m64nNk16 bf16 x bf16 + f32, N a multiple of 8 up to 256": a row, for people.
std::string to_string(const MmaAtom& atom);
// "mma m16n8k16 bf16 x bf16 + f32": one of its instructions.
std::string mma_name(const MmaAtom& atom, const MmaTypes& types, int n);

// --- Which element a thread holds ---

enum class MmaOperand : uint8_t { kA, kB, kAccumulator };

// `extent` steps, each of so many elements; an element's number is row + rows * column, of b's n x k too.
struct MmaMode {
  int extent = 1;
  int stride = 0;
  bool operator==(const MmaMode&) const = default;
};
struct MmaElement {
  int row = 0, column = 0;
  bool operator==(const MmaElement&) const = default;
};

// The layout of a fragment: from a thread of the scope, and the number of an element that it holds, to an element of a
// matrix of rows x columns. Of both the first mode is the fastest.
struct MmaFragment {
  int rows = 0, columns = 0;
  std::array<MmaMode, 3> thread;  // four lanes, eight lanes, warps; one thread: none of them
  std::array<MmaMode, 3>
      value;  // within a register, from eight rows to the next eight, along the columns

  int threads() const;
  // How many elements a thread holds.
  int values() const;
  MmaElement at(int thread_number, int value_number) const;
};

// The fragment of an operand, whose elements have that type; n is the product's. Of a kind with tiles in shared memory
// it is a's where a is in registers, and b has none.
MmaFragment fragment_of(const MmaAtom& atom, MmaOperand operand, Scalar scalar, int n);

}  // namespace heddle::ir
