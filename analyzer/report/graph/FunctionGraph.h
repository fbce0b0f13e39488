//===- FunctionGraph.h - where the tensors of a function live ---*- C++ -*-===//
//
// Makes the DeviceGraph of one function from the places that the solver recorded.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/report/graph/DeviceGraph.h"
#include "analyzer/solve/solution/Solution.h"

#include <string>

namespace devicetidy {

/// Collects where the tensors and modules of one function live, over all programs it is part of.
class FunctionGraph {
public:
  /// `name` is qualified. Its overloads and instantiations in `file`, and the lambdas in it, are one picture.
  FunctionGraph(std::string name, Name file) : name(std::move(name)), file(file) {}

  /// Adds the results of `solution` for the function. Solution::placed must cover the files of the function.
  void add(const Program &program, const Solution &solution);

  /// Empty when no tensor of the function has a known device.
  DeviceGraph take();

private:
  std::string name;
  Name file;
  GraphBuilder builder;
  std::size_t operations = 0;
};

} // namespace devicetidy
