//===- CheckGlobs.h - the checks selected by globs --------------*- C++ -*-===//
//
// Reads a list of globs as clang-tidy does and selects checks by it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <set>
#include <string>

namespace devicetidy::config {

/// Checks named by `globs`, the way clang-tidy reads them: comma-separated, `*` stands for anything, a
/// leading `-` removes, later globs win. A list that starts with a removal removes from all checks. False,
/// with a sentence in `error`, when a glob matches no check.
bool selectChecks(const std::string &globs, std::set<std::string> &selected, std::string &error);

/// Does one of `globs`, with or without a leading `-`, match `check`?
bool speakOf(const std::string &globs, const std::string &check);

} // namespace devicetidy::config
