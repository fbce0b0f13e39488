//===- ScaleProgram.h - a large training program, as facts ------*- C++ -*-===//
//
// Every unit holds a network, a factory of batches, helpers of 10 to 60 statements that call helpers of other
// units, and a training function with loops and branches; main() trains all networks on a device it chooses.
// Every tenth unit forgets to move its labels.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

namespace devicetidy::bench {

/// Unit `number` of a program of `count` units; about 500 statements, a line each.
Unit scaleUnit(int number, int count);

} // namespace devicetidy::bench
