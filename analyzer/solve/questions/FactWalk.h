//===- FactWalk.h - questions about the facts of a function -----*- C++ -*-===//
//
// Follows values and control flow inside one function without solving it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <cstddef>
#include <optional>
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

/// The module whose parameters or buffers the object at operand 0 of the call at `place` is one of, copied in
/// a loop over `module->parameters()` and the like: the operand of that call, and whether `->` stands before
/// it.
struct OwningModule {
  Name text; ///< as the code names it; "this" where it names nothing
  bool isPointer = false;
};
std::optional<OwningModule> owningModule(const FactPlace &place);

/// An operand of a fact.
struct OperandPlace {
  FactPlace place;
  std::size_t index = 0;

  const Operand &operand() const { return place.fact().operands[index]; }
};

/// What gives the field `member` of `*this` a value in `function`, null pointers left out. Of a constructor
/// that runs in place, the operand stands for the whole object.
std::vector<OperandPlace> valuesOf(const Program &program, const Function &function, std::string_view member);

/// The call whose result the operand is, through a temporary; nothing for another expression.
std::optional<FactPlace> callOf(const OperandPlace &operand);

} // namespace devicetidy
