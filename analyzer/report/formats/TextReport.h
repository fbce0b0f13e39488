//===- TextReport.h - diagnostics as clang prints them ----------*- C++ -*-===//
//
// The format `text`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/source/Source.h"

#include <string>
#include <vector>

namespace devicetidy {

/// Appends to `out`, for each diagnostic, "file:line:column: warning: message [check]", the source line with
/// a caret, and the notes in the same form.
void writeTextReport(const std::vector<Diagnostic> &diagnostics, SourceCache &sources, bool colour,
                     std::string &out);

} // namespace devicetidy
