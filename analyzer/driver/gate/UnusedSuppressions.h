//===- UnusedSuppressions.h - NOLINT comments without a finding -*- C++ -*-===//
//
// Implements --report-unused-suppressions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"
#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/source/Source.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// A finding of any level, shown or not. A comment that suppresses one is used.
struct FindingPlace {
  std::string check;
  Location where;
};

/// A warning for each name of a check (or glob that begins with "device-") in a NOLINT comment of `files`
/// that suppresses none of `places`. `isEnabled` says whether a check ran for a file; comments for other
/// checks are not reported. Comments for every check or for those of other tools are left alone.
std::vector<Diagnostic>
unusedSuppressions(const std::set<Name> &files, const std::vector<FindingPlace> &places, SourceCache &sources,
                   const std::function<bool(Name file, const std::string &check)> &isEnabled);

} // namespace devicetidy::driver
