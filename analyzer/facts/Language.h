//===- Language.h - which language a file is in -----------------*- C++ -*-===//
#pragma once

#include "analyzer/facts/NameParts.h"

namespace devicetidy {

/// By its name.
inline bool isPython(std::string_view file) { return endsWith(file, ".py") || endsWith(file, ".ipynb"); }

} // namespace devicetidy
