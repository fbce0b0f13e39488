//===- Distributed.h - what starts distributed training ---------*- C++ -*-===//
//
// Questions about single names: distributed.csv and words.csv answer them, and what a user adds to them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace devicetidy {

/// Functions and classes that do what some of distributed.csv do; qualified names, or their last parts.
struct DistributedNames {
  std::set<std::string, std::less<>> loaders;      ///< load a model and take a placement map
  std::set<std::string, std::less<>> initialisers; ///< initialise distributed training
  std::set<std::string, std::less<>> launchers;    ///< start the command they are given
};

/// Is `name`, or its last part, one of `names`?
bool isListed(const std::set<std::string, std::less<>> &names, std::string_view name);
/// Does a function, or the constructors of a class, of this name initialise distributed training?
bool initialises(std::string_view name, const DistributedNames &names);
/// Runs Python source: PyRun_SimpleString, py::exec ...
bool runsPython(std::string_view callee);
/// Starts another program: system, popen, execvp ...
bool startsProgram(std::string_view callee, const DistributedNames &names);

} // namespace devicetidy
