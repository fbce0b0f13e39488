//===- FactsHarness.h - the solver on hand-written facts --------*- C++ -*-===//
//
// Tests of the solver are written in the facts text (analyzer/facts/Text.h), without clang. The types most
// tests need are in a prelude, and one abbreviation keeps the tests short:
//
//   %1 = tensor cuda:1
//
// stands for the three facts that make a tensor there: the device's name, the options, the factory. It uses
// the registers %8 and %9 in front of the number, here %81 and %91.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/solve/Solve.h"
#include "analyzer/solve/engine/Machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::test {

using Strings = std::vector<std::string>;

/// The facts with the prelude in front and abbreviations written out.
std::string expand(std::string_view facts);

/// Reads facts text into a program; throws std::invalid_argument with the line and the reason when it is
/// none.
Program programOf(std::string_view facts);

/// One program with a machine on it.
class Analysis {
public:
  explicit Analysis(std::string_view facts);

  /// What `function` returns, each different answer once, sorted. A tensor is shown as its device ("cpu",
  /// "cuda:1", "x.device()"), a number as its digits, a pointer as "address", what nobody knows as "unknown".
  /// Parameters are decided outside, as for an entry of the analysis.
  Strings returned(std::string_view function = "f");

  /// How many rows `function` returns in.
  std::size_t rowsReturned(std::string_view function = "f");

  /// How often the bound called `name` was hit since the start.
  std::size_t capsHit(const std::string &name);

  /// How often the body of any function was run.
  std::size_t contexts() const { return solution.stats.contexts; }

  Program program;
  Solution solution;
  Usage usage;
  Machine machine;

private:
  Outcomes run(std::string_view function);
  std::string describe(const Row &row, Value value) const;
};

/// `Analysis(facts).returned("f")`.
Strings returned(std::string_view facts);

/// The conflicts of the whole program, as "definite add cuda:1 cpu" (level, operation, devices), in order.
Strings conflicts(std::string_view facts, bool latent = false);

} // namespace devicetidy::test
