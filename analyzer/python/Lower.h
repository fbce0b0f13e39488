//===- Lower.h - Python files as units --------------------------*- C++ -*-===//
#pragma once

#include "analyzer/facts/Program.h"

#include <string>
#include <vector>

namespace devicetidy::python {

struct Request {
  std::vector<std::string> files;      ///< absolute paths of .py and .ipynb files
  std::string interpreter = "python3"; ///< whose parser reads them
};

/// Reads the files and the files of the project that they import, and lowers each to a unit; those asked for
/// come first. A file that cannot be read is a unit with a parse error. False with `error` when none could
/// be.
bool lowerFiles(const Request &request, std::vector<Unit> &units, std::string &error);

} // namespace devicetidy::python
