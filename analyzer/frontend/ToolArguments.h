//===- ToolArguments.h - arguments of every parse ---------------*- C++ -*-===//
//
// What is added to each compile command, and the list of files that a parse has read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace clang {
class SourceManager;
}

namespace devicetidy {
class Name;
}

namespace devicetidy::frontend {

/// `arguments` with clang's own headers, no output and no warnings.
std::vector<std::string> toolArguments(const std::vector<std::string> &arguments);

/// Every file that was entered, sorted; of a precompiled header only those that were used.
std::vector<Name> sourceFiles(const clang::SourceManager &sources);

} // namespace devicetidy::frontend
