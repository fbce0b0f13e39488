//===- IncludeScan.h - third-party headers a file will read -----*- C++ -*-===//
#pragma once

#include "analyzer/frontend/Lower.h"

#include <vector>

namespace devicetidy::frontend {

/// What of a compile command the search for headers depends on.
struct IncludeSearch {
  std::string directory;
  std::vector<std::string> arguments; ///< without the source file
  std::function<bool(const std::string &path)> isProjectFile;
  const UnsavedFiles *unsaved = nullptr; ///< null: everything is as it is on disk
};

/// The third-party headers that a parse of `file` surely includes, in the order in which it meets them,
/// directly and through project headers; each as `#include <...>` names it. They may be read before anything
/// else of the unit: none is under a condition, and the list ends where the project defines a macro that
/// later headers could see. Only looks at the text of project files.
std::vector<std::string> leadingIncludes(const std::string &file, const IncludeSearch &search);

} // namespace devicetidy::frontend
