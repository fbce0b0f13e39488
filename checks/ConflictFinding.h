//===- ConflictFinding.h - findings from conflicts --------------*- C++ -*-===//
//
// Makes a finding from a conflict, for all checks that report operations.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/Finding.h"

#include <string_view>

namespace devicetidy {

/// The finding of the check `name` for an operation whose operands are on different devices.
inline Finding conflictFinding(std::string_view name, const Conflict &conflict) {
  Finding finding;
  finding.check = name;
  finding.level = conflict.level;
  finding.where = conflict.where;
  finding.operation = conflict.operation;
  finding.operands = {conflict.first, conflict.second};
  finding.callers = conflict.callers;
  finding.fixAt = conflict.second.where;
  finding.cause = conflict.cause;
  return finding;
}

} // namespace devicetidy
