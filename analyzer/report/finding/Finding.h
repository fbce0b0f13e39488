//===- Finding.h - what a check found, as plain values ----------*- C++ -*-===//
//
// A finding holds no text for the user: names, devices and places only. diagnostic/Describe.h makes the
// sentences.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/solve/questions/Sites.h"
#include "analyzer/solve/solution/Solution.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy {

/// A place that belongs to a finding; `key` picks its sentence from the registry.
struct RelatedPlace {
  std::string key;
  Location where;
  bool isAdvice = false; ///< the sentence says what to do: the last note
};

/// A module, as written where it is used.
struct UsedModule {
  std::string name; ///< empty: none
  Location where;   ///< the call of a method of it
};

struct Finding {
  std::string check; ///< name of the check, as in the registry
  Level level = Level::Definite;
  Location where;
  std::string operation;
  std::vector<PlacedOperand> operands; ///< the one that fixes the device, then the one that should be moved
  std::vector<Step> origin;            ///< where the offending value comes from, oldest first
  std::vector<RelatedPlace> related;   ///< in the order of the notes
  std::vector<CallSite> callers;       ///< innermost first
  std::map<std::string, std::string> fields; ///< further fields of the check's templates
  std::string fix;                           ///< expression that repairs the code, may be empty
  Location fixAt;                            ///< what `fix` replaces
  Location cause;      ///< where the mistake was made, if that is in another function than `where`
  CodeSite site;       ///< filled in by locate()
  CodeSite madeSite;   ///< where what was left behind is made, or registered; filled in by locate()
  CodeSite keptSite;   ///< where what stays was put on its device; filled in by locate()
  CodeSite moduleSite; ///< where usedModule() is used; filled in by locate()
};

/// Whose parameters are left behind, or the outermost module that has that as a part: `net` for a layer in
/// the forward() of `net`.
UsedModule usedModule(const Finding &finding);

/// Is a place of the finding or of its notes in one of `files`?
bool touches(const Finding &finding, const std::set<Name> &files);

/// Orders findings by file, line, column and check, and of equal findings at one place keeps the one with the
/// highest level: programs share code, and translation units share headers. Findings that differ only in the
/// devices are equal, because these may differ from program to program; those with another cause are not.
void sortAndMerge(std::vector<Finding> &findings);

} // namespace devicetidy
