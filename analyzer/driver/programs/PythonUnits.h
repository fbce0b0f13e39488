//===- PythonUnits.h - the Python files of a command line -------*- C++ -*-===//
#pragma once

#include "analyzer/driver/options/Options.h"
#include "analyzer/driver/programs/ReadUnits.h"
#include "analyzer/facts/Program.h"

namespace devicetidy::driver {

struct PythonUnits {
  std::vector<Unit> units;
  std::size_t asked = 0; ///< the first so many were asked for
  std::size_t own = 0; ///< the first so many were asked for or are imported; those up to `files` are context
  std::size_t files = 0; ///< the others are models of libraries
  std::vector<std::string> roots;
  ReadCounts counts;
  std::string remark; ///< why the cache could not be written, or empty
};

/// Do the FILES name Python alone: .py, .ipynb, or folders with such files?
bool namesPython(const Options &options);
/// Is Python among them?
bool hasPython(const Options &options);

/// Reads them and what they import, or takes their facts from the cache; with --whole-program, all Python
/// files of the project. False with `error` when that cannot be done.
bool readPython(const Options &options, PythonUnits &read, std::string &error);

} // namespace devicetidy::driver
