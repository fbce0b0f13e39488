//===- StepText.h - the steps of a tensor, in words -------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/Solution.h"

#include <string>
#include <vector>

namespace devicetidy {

/// A device as sentences name it: cpu, cuda:1, 'device'.
std::string deviceText(const std::string &written);

/// The story of an operand. A tensor that was only ever created is known by the name the operation calls it.
std::vector<Step> storyOf(const PlacedOperand &operand);

/// The sentence for one step of a witness: "'y' is created on cpu here".
std::string describeStep(const Step &step);

} // namespace devicetidy
