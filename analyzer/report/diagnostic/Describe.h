//===- Describe.h - from findings to sentences ------------------*- C++ -*-===//
//
// Makes a diagnostic from a finding with the templates of checks.json.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/finding/CheckInfo.h"
#include "analyzer/report/finding/Finding.h"
#include "analyzer/report/source/Source.h"

namespace devicetidy {

/// Puts a finding of the check `info` into words: the message, then the steps that put each tensor where it
/// is (oldest first), the other places, the calls that lead here, and the fix. `sources` has the text
/// of the call that a fix repeats.
Diagnostic describe(const Finding &finding, const CheckInfo &info, SourceCache &sources);

} // namespace devicetidy
