//===- ShownPlace.h - where a reader meets a finding ------------*- C++ -*-===//
//
// A finding belongs to every file that its story passes through. A reader who asked for one of these files
// meets it there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"

#include <functional>

namespace devicetidy {

/// Shows the diagnostic at the first wanted place of its story, with the failing operation as a note: its
/// cause, else the innermost call, else what happened to its tensors. False when no place is wanted; then
/// nothing changes.
bool showWhereItEnters(Diagnostic &diagnostic, const std::function<bool(const Location &)> &isWanted);

} // namespace devicetidy
