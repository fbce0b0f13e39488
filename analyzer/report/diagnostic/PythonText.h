//===- PythonText.h - sentences about Python code ---------------*- C++ -*-===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"

namespace devicetidy {

/// `text` with what it quotes of LibTorch as Python spells it: `torch.zeros`, `x.device`, `"cuda:1"`.
std::string inPython(std::string text);
/// The same for all texts of `diagnostic` that are about Python files.
void speakPython(Diagnostic &diagnostic);

} // namespace devicetidy
