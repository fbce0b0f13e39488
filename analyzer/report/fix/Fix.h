//===- Fix.h - a change of the source that repairs a finding ----*- C++ -*-===//
//
// A replacement of text in one file, with a description.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"

#include <cstddef>
#include <string>

namespace devicetidy {

/// Puts `text` in the place of `length` bytes from byte `offset` of the file.
struct Replacement {
  Location where; ///< the same bytes as a range of lines and columns
  std::size_t offset = 0, length = 0;
  std::string text;

  friend bool operator==(const Replacement &a, const Replacement &b) {
    return a.where.file == b.where.file && a.offset == b.offset && a.length == b.length && a.text == b.text;
  }
};

struct Fix {
  std::string description; ///< what it does, as an order: "move 'y' to the device of 'x'"
  Replacement change;
};

} // namespace devicetidy
