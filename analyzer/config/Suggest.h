//===- Suggest.h - what the user may have meant -----------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace devicetidy::config {

/// "; did you mean 'X'?" for the nearest of `candidates`, or nothing when none is near.
std::string suggestion(llvm::StringRef misspelt, const std::vector<std::string> &candidates);

} // namespace devicetidy::config
