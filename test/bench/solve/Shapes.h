//===- Shapes.h - programs of any size, as facts ----------------*- C++ -*-===//
//
// Each shape is a family of programs that grow in one way only. Their text is in the form of
// analyzer/facts/Text.h with the prelude and the abbreviation of test/unit/solve/FactsHarness.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace devicetidy::bench {

struct Shape {
  const char *name;
  std::string (*facts)(int size); ///< the program of that size
  std::vector<int> sizes;         ///< sizes to measure, ascending
};

const std::vector<Shape> &shapes();

} // namespace devicetidy::bench
