//===- Parse.h - Python files, read by CPython ------------------*- C++ -*-===//
#pragma once

#include "analyzer/python/Syntax.h"

#include <memory>
#include <set>

namespace devicetidy::python {

/// A command of the project that starts a program once for each GPU.
struct Launch {
  std::string command;               ///< "torchrun"
  std::vector<std::string> programs; ///< paths that it may mean
  Location where;
};

/// What an interpreter made of some files.
struct Parsed {
  Schema schema;
  std::vector<std::unique_ptr<File>> files;
  std::vector<Launch> launches;
};

/// Reads `paths` with `interpreter` (a name that is looked for in PATH, or a path). False with `error` when
/// it cannot be run; a file that is no Python has an error of its own. "launches FOLDER" among the paths asks
/// for the launches below that folder.
bool parse(const std::string &interpreter, const std::vector<std::string> &paths, Parsed &parsed,
           std::string &error);
/// Adds the models of libraries for `packages` ("transformers"). They were read when the tool was built.
void parseModels(const std::set<std::string> &packages, Parsed &parsed);

} // namespace devicetidy::python
