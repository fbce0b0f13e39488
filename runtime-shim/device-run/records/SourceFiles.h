//===- SourceFiles.h - which sources an ELF file is made of -----*- C++ -*-===//
//
// Reads the names of the source files from the line tables of the debug information.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace devicerun {

/// The source files and headers that the code of `module` comes from, as the debug information names them; a
/// relative name is relative to something unknown. Nothing when the file has no line tables that can be read.
std::optional<std::vector<std::string>> sourceFilesOf(const std::string &module);

} // namespace devicerun
