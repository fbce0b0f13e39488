//===- Suggest.h - suggestions for misspelt words ---------------*- C++ -*-===//
//
// The end of an error message that suggests the nearest known word.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace devicetidy::config {

/// "; did you mean 'X'?" for the nearest of `candidates`, or nothing when none is near.
std::string suggestion(llvm::StringRef misspelt, const std::vector<std::string> &candidates);

} // namespace devicetidy::config
