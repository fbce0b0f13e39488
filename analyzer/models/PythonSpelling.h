//===- PythonSpelling.h - how Python writes what C++ names ------*- C++ -*-===//
#pragma once

#include <string>

namespace devicetidy::models {

/// `text` with what it quotes of LibTorch as Python spells it: `torch.zeros`, `x.device`, `"cuda:1"`.
std::string inPython(std::string text);

} // namespace devicetidy::models
