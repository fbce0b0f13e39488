//===- IncludeScan.h - third-party headers a file will read -----*- C++ -*-===//
//
// Scans the text of project files for #include lines, before anything is parsed. The result decides which
// headers a preamble holds.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/frontend/Lower.h"

#include <vector>

namespace devicetidy::frontend {

/// The parts of a compile command that the search for headers depends on.
struct IncludeSearch {
  std::string directory;
  std::vector<std::string> arguments; ///< without the source file
  std::function<bool(const std::string &path)> isProjectFile;
  const UnsavedFiles *unsaved = nullptr; ///< null: all files are as on disk
};

/// A third-party header that a parse surely includes.
struct LeadingInclude {
  std::string name;             ///< as `#include <...>` names it
  std::size_t macrosBefore = 0; ///< how many of LeadingIncludes::macros come before it
};

struct LeadingIncludes {
  std::vector<LeadingInclude> headers; ///< in the order in which the parse meets them
  std::vector<std::string> macros;     ///< what the project defines or undefines before one of them
};

/// The third-party headers that `file` includes under no condition, directly and through project headers.
/// Each may be read before anything else of the unit when it mentions none of the macros before it. The
/// list ends at an include whose file is computed. Only looks at the text of project files.
LeadingIncludes leadingIncludes(const std::string &file, const IncludeSearch &search);

} // namespace devicetidy::frontend
