//===- LibTorch.h - the LibTorch of this process ----------------*- C++ -*-===//
//
// Which LibTorch this process has loaded, if any.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace vcuda {

/// The path of the loaded library whose name starts with `name`, such as "libtorch_cpu.so"; "" when there is
/// none.
std::string loadedLibrary(const char *name);

/// The address of a symbol in LibTorch's libraries, or nullptr.
void *symbolOfLibTorch(const char *symbol);

/// "2.13.0" as LibTorch says; "" where it does not, as in builds with the old ABI of libstdc++.
std::string versionOfLibTorch();

} // namespace vcuda
