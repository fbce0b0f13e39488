//===- UncaughtExceptions.h - the exception that ends a program -*- C++ -*-===//
//
// The exception that ends the program, for the launcher: a device error before it may have been caught.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Export.h"

#include <string>

namespace vcuda {

/// To be called once. Does nothing when no records are asked for.
void watchUncaughtExceptions();

/// An exception of an interpreter ends the process.
VCUDA_EXPORT void recordUncaught(const std::string &text);

} // namespace vcuda
