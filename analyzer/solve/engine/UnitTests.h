//===- UnitTests.h - functions that test others ----------------*- C++ -*-===//
//
// A unit test calls what it tests, but it is not what the code is for: whoever uses the code calls it as
// well.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

namespace devicetidy {

/// Is `function` the body of a test, as the macros of a framework write it, or a lambda in one?
bool isUnitTest(const Function &function);
/// Does `function` stand in a file of tests in Python, as pytest finds them? Nobody but the tests calls it.
bool isOfTestFile(const Function &function);

} // namespace devicetidy
