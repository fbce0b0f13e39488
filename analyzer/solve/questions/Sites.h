//===- Sites.h - the code around an operation -------------------*- C++ -*-===//
//
// What has to be known about the code around an operation to name it and to repair it: the function, its
// variables, which expressions are tensors, and whether a macro wrote the code. The answers come from the
// facts of the program; devices play no part.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <map>
#include <string>
#include <vector>

namespace devicetidy {

/// Which code is asked about.
struct SiteQuestion {
  Location where;                 ///< the operation
  Location fixAt;                 ///< where a repair would change the code
  std::vector<Location> operands; ///< of the operation
  std::vector<Location> history;  ///< where the operands were made and moved
  std::string className, member;  ///< the member that is repaired at `fixAt`; both empty: none
};

/// The code around an operation.
struct CodeSite {
  std::string function;       ///< qualified name of the function that holds the operation; may be empty
  bool inMacro = false;       ///< the code comes from the body or an argument of a macro
  bool isMadeInMacro = false; ///< the same for the place where an operand is made
  bool isTemplate = false;    ///< the function has several instantiations
  bool isLambda = false;
  std::vector<Variable> locals;  ///< of the function, parameters first
  std::vector<Location> tensors; ///< expressions that are tensors in every instantiation
  Location receiver;             ///< object of the member call at the operation; invalid for other code
  bool receiverIsTensor = false;
  bool isAssignable = false; ///< what the receiver names could be assigned to
  bool isPointee = false;    ///< the call is written with `->`, and the receiver is what stands before it
  bool isForgotten = false;  ///< the receiver is in a variable that nothing mentions afterwards
  std::string module;        ///< `net->` where the receiver is a parameter in a loop over `net->parameters()`
  std::map<std::string, Name> members; ///< fields of the class whose method the function is, and their types
  /// Of the member that is asked about: whether it is a tensor, and the expression that gives it its value at
  /// `fixAt`, once for each object; invalid where there is none, or more than one.
  bool memberIsTensor = false;
  Location memberValue;

  /// Is exactly this range an expression known to be a tensor?
  bool isTensor(const Location &where) const;
  /// Of the variables called `name`, the one declared last before `where`; null when there is none.
  const Variable *declared(std::string_view name, const Location &where) const;
};

/// The answers to `questions`, in their order.
std::vector<CodeSite> sitesOf(const std::vector<SiteQuestion> &questions, const Program &program);

} // namespace devicetidy
