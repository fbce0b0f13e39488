//===- StepText.h - the steps of a history in words -------------*- C++ -*-===//
//
// Sentences for the steps that decided the device of a tensor.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/source/Source.h"
#include "analyzer/solve/solution/Solution.h"

#include <string>
#include <vector>

namespace devicetidy {

/// "cpu", "cuda" or "cuda:1", as opposed to a device only the program knows ("device", "cuda:rank").
bool isLiteralDevice(std::string_view device);

/// An operand as sentences name it: 'x', the parameters of 'net'.
std::string operandText(const PlacedOperand &operand);

/// A device as sentences name it: cpu, cuda:1, 'device'.
std::string deviceText(const std::string &written);

/// The steps of a history that there is something to say about.
std::vector<Step> toldSteps(std::vector<Step> steps);

/// The history of an operand. A tensor that was only created, on a line that names it as the operation does,
/// gets that name.
std::vector<Step> historyOf(const PlacedOperand &operand, SourceCache &sources);

/// The sentence for one step of a history: "'y' is created on cpu here".
std::string describeStep(const Step &step);

} // namespace devicetidy
