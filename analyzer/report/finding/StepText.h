//===- StepText.h - the steps of a history in words -------------*- C++ -*-===//
//
// Sentences for the steps that decided the device of a tensor.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/solution/Solution.h"

#include <string>
#include <vector>

namespace devicetidy {

/// A device as sentences name it: cpu, cuda:1, 'device'.
std::string deviceText(const std::string &written);

/// The history of an operand. A tensor that was only created gets the name that the operation uses.
std::vector<Step> historyOf(const PlacedOperand &operand);

/// The sentence for one step of a history: "'y' is created on cpu here".
std::string describeStep(const Step &step);

} // namespace devicetidy
