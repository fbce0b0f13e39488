//===- Arguments.h - compile commands that our clang can parse --*- C++ -*-===//
//
// Changes the arguments of a compile command so that clang can parse the source: other compilers'
// options, outputs and precompiled headers are removed, and CUDA sources get the replacement headers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::driver {

enum class Language { Cxx, Cuda, Hip, Other };

/// The language of `file`, by its name.
Language languageOf(std::string_view file);

struct AdjustedArguments {
  std::vector<std::string> arguments; ///< argv[0] first, the source file last
  Language language = Language::Cxx;  ///< what the command says, or else the name of the file
};

/// Turns the compile command `arguments` (argv[0] first) of `file` into one that only parses: what writes
/// files, asks for code generation, names a foreign precompiled header or is unknown to clang (gcc and nvcc
/// have options of their own) is dropped, the rest stays in its order.
AdjustedArguments adjustArguments(const std::vector<std::string> &arguments, const std::string &file,
                                  const std::string &directory);

/// What `arguments` name with -o, absolute; empty when nothing is named or nothing is kept.
std::string objectFile(const std::vector<std::string> &arguments, const std::string &directory);

/// Directories that `arguments` search as system headers (-isystem and similar), absolute.
std::vector<std::string> systemDirectories(const std::vector<std::string> &arguments,
                                           const std::string &directory);

} // namespace devicetidy::driver
