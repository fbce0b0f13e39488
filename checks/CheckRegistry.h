//===- CheckRegistry.h - all checks -----------------------------*- C++ -*-===//
//
// The list of checks that generate.py makes from checks.json.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/CheckInfo.h"
#include "checks/Check.h"

#include <memory>

namespace devicetidy {

/// The entries of checks.json, by name.
const std::vector<CheckInfo> &checkInfos();

/// The entry with the name `name`, or null.
const CheckInfo *findCheckInfo(std::string_view name);

/// One object per check, in the order of checkInfos().
std::vector<std::unique_ptr<Check>> makeChecks();

} // namespace devicetidy
