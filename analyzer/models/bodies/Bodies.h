//===- Bodies.h - the model bodies, as facts --------------------*- C++ -*-===//
//
// What the sources below this folder say library functions do (dt.h explains them), lowered when the tool was
// built. No clang.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

namespace devicetidy::models {

/// The program that all model bodies make; the same object for the life of the process.
const Program &bodies();

} // namespace devicetidy::models
