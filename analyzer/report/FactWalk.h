//===- FactWalk.h - small questions to the facts of a function --*- C++ -*-===//
#pragma once

#include "analyzer/facts/Program.h"

#include <cstddef>
#include <vector>

namespace devicetidy {

/// A fact of a function.
struct FactPlace {
  const Function *function = nullptr;
  BlockId block = 0;
  std::size_t index = 0;

  const Fact &fact() const { return function->blocks[static_cast<std::size_t>(block)].facts[index]; }
};

/// Can control come back to `place` before the function ends?
bool isInLoop(const FactPlace &place);

/// Is the object at operand 0 of the call at `place` in a variable or a temporary of the function, and does
/// nothing that runs afterwards mention that? What is assigned to it is lost then.
bool isForgotten(const FactPlace &place);

/// The operands that give the field `member` of `*this` a value in `function`, null pointers left out. Of a
/// constructor that runs in place, the operand stands for the whole object.
std::vector<const Operand *> valuesOf(const Program &program, const Function &function,
                                      std::string_view member);

} // namespace devicetidy
