//===- Glob.h - names with stars --------------------------------*- C++ -*-===//
//
// Matches names against globs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string_view>

namespace devicetidy {

/// Does `text` match `glob`, in which `*` stands for any characters?
bool globMatches(std::string_view glob, std::string_view text);

/// Does `text` match one of `globs`, which have ";" between them?
bool matchesGlobIn(std::string_view globs, std::string_view text);

} // namespace devicetidy
