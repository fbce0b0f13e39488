//===- MovedOperand.h - an operand on the device of another -----*- C++ -*-===//
//
// The advice for operands on different devices: the expression to write for the one that has to move.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/Finding.h"

#include <string>

namespace devicetidy {

/// `y.to(x.device())`, which puts the second operand of `finding` right; empty where no expression does. What
/// a module has registered is moved with it, the operand that stays is not to run twice, and the text of a
/// macro is not the code it makes.
std::string movedOperand(const Finding &finding);

} // namespace devicetidy
