//===- PythonText.h - sentences about Python code ---------------*- C++ -*-===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"

namespace devicetidy {

/// The texts of `diagnostic` as they are said of a Python file, where it is in one.
void speakPython(Diagnostic &diagnostic);

/// A text as it is said of `file`.
std::string spokenIn(Name file, std::string text);

} // namespace devicetidy
