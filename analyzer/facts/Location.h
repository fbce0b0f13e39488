//===- Location.h - a place in a source file --------------------*- C++ -*-===//
//
// The range of source text that facts, findings and fixes refer to.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"

#include <cstdint>
#include <tuple>

namespace devicetidy {

/// A range of source text. Lines and columns start at 1, columns count bytes, the end is exclusive.
/// `line == 0` means "no location".
struct Location {
  Name file; ///< absolute path
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t endLine = 0;
  std::uint32_t endColumn = 0;

  bool valid() const { return line != 0; }
  friend bool operator==(const Location &a, const Location &b) {
    return a.file == b.file && a.line == b.line && a.column == b.column;
  }
  friend bool operator!=(const Location &a, const Location &b) { return !(a == b); }
  friend bool operator<(const Location &a, const Location &b) {
    return std::tie(a.file, a.line, a.column) < std::tie(b.file, b.line, b.column);
  }
};

} // namespace devicetidy
