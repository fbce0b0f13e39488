//===- Finding.h - what a check found, as plain values ----------*- C++ -*-===//
//
// A finding holds no text for the user: names, devices and places only. diagnostic/Describe.h makes the
// sentences.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/solve/Solution.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy {

/// A place that belongs to the story of a finding; `key` picks its sentence from the registry.
struct RelatedPlace {
  std::string key;
  Location where;
};

/// The code around a finding, as far as naming and repairing it needs it. Filled in by locate().
struct Site {
  std::string function;       ///< qualified name of the function that holds the finding; may be empty
  bool inMacro = false;       ///< the code comes from the body or an argument of a macro
  bool isMadeInMacro = false; ///< the same for the place where an operand is made
  bool isTemplate = false;    ///< the function has several instantiations
  bool isLambda = false;
  std::vector<Variable> locals;  ///< of the function, parameters first
  std::vector<Location> tensors; ///< expressions that are tensors in every instantiation
  Location receiver;             ///< object of the member call at the finding; invalid for other code
  bool receiverIsTensor = false;
  bool isAssignable = false; ///< what the receiver names could be assigned to
  bool isPointee = false;    ///< the call is written with `->`, and the receiver is what stands before it
  bool isForgotten = false;  ///< the receiver is in a variable that nothing mentions afterwards
  std::string module;        ///< `net->` where the receiver is a parameter in a loop over `net->parameters()`
  std::set<std::string> members; ///< fields of the class whose method the function is
  /// The member `fields["member"]` of `fields["class"]`: whether it is a tensor, and the expression that
  /// gives it its value at `fixAt`, once for each object; invalid where there is none, or another beside it.
  bool memberIsTensor = false;
  Location memberValue;

  /// Is exactly this range an expression known to be a tensor?
  bool isTensor(const Location &where) const;
};

struct Finding {
  std::string check; ///< name of the check, as in the registry
  Level level = Level::Definite;
  Location where;
  std::string operation;
  std::vector<PlacedOperand> operands; ///< the one that fixes the device, then the one that should be moved
  std::vector<Step> origin;            ///< where the offending value comes from, oldest first
  std::vector<RelatedPlace> related;   ///< in the order in which they are told
  std::vector<CallSite> callers;       ///< innermost first
  std::map<std::string, std::string> fields; ///< further fields of the check's templates
  std::string fix;                           ///< expression that repairs the code, may be empty
  Location fixAt;                            ///< what `fix` replaces
  Site site;
};

/// Does a place of the finding's story lie in one of `files`?
bool touches(const Finding &finding, const std::set<Name> &files);

/// Orders findings by file, line, column and check, and keeps the surest of those that say the same thing in
/// the same place: programs share code, and translation units share headers. Which devices meet there may
/// differ from program to program and does not make it another finding.
void sortAndMerge(std::vector<Finding> &findings);

} // namespace devicetidy
