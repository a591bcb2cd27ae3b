// The part of the generator that computes: every elementwise op of the table, and those that move
// elements around.
#pragma once

#include "fuzz/generator_base.h"

namespace heddle::fuzz {

class ArithmeticGenerator : public GeneratorBase {
 protected:
  using GeneratorBase::GeneratorBase;

  // One op, or a few that belong together; nothing but values comes of them.
  void arithmetic();
  // One of at most two instructions, which may run where the program would not come.
  void cheap();
  // Some of what was made last goes into the witness, where the program has one.
  void witness();
  // A bool that may differ between threads.
  ValueId condition();

  // A variable that many results are mixed into. What nothing uses is what no mistake shows in.
  ValueId witness_ = ValueId::kNone;

 private:
  void table_op(Opcode opcode);
  ValueId operand_of(const ir::Position& position, Opcode opcode, size_t index, Type type);
  ValueId divisor(Type type);
  ValueId launch_divisor(Type type);
  ValueId special_divisor(Type type);
  void divide();  // quotient and remainder of two integers
  void convert();
  void bitcast();
  void chain();       // the same op twice, with constants
  void again();       // what was computed before once more
  void elements();    // pack, slice, extract, splat
  void neighbours();  // a vector from what the same ops make of each element
  void promise();
};

}  // namespace heddle::fuzz
