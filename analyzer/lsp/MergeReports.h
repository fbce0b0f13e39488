//===- MergeReports.h - merges the results of several projects --*- C++ -*-===//
//
// Merges the results of several projects for one file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/FileReport.h"

namespace devicetidy::lsp {

/// The results of `first` for a file, with what only `second` has: findings of the same rule and sentence in
/// the same place are one, and an expression is on the devices of both. Both are for the same text.
FileReport merged(const FileReport &first, const FileReport &second);

} // namespace devicetidy::lsp
