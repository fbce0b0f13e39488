//===- Language.h - which language a file is in -----------------*- C++ -*-===//
#pragma once

#include "analyzer/facts/NameParts.h"
#include "analyzer/facts/Program.h"

namespace devicetidy {

/// By its name. Lines of a notebook are those of its cells with code, one after the other.
inline bool isNotebook(std::string_view file) { return endsWith(file, ".ipynb"); }

/// By its name.
inline bool isPython(std::string_view file) { return endsWith(file, ".py") || isNotebook(file); }

/// Does pytest take it for one of tests? By its name.
inline bool isTestOfPython(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return isPython(file) && (startsWith(name, "test_") || endsWith(name, "_test.py"));
}

/// What the body of a module is called that others import.
constexpr std::string_view importedBody = "@module";

/// Is it the body of a comprehension, which is run where it stands?
inline bool isComprehension(const Function &function) {
  return function.isLambda && function.isPrivate && isPython(function.where.file.view());
}

} // namespace devicetidy
