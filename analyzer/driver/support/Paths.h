//===- Paths.h - file names in a form that can be compared ------*- C++ -*-===//
//
// Makes paths absolute and compares them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace devicetidy::driver {

/// `path` relative to `directory` (empty: the current one) made absolute: absolute, without "." and "..",
/// symbolic links kept.
std::string absolutePath(llvm::StringRef path, llvm::StringRef directory = {});

/// Is `path` the directory `root` or below it? Both are absolute.
bool isUnder(llvm::StringRef path, llvm::StringRef root);

/// The deepest directory above both.
std::string commonDirectory(llvm::StringRef first, llvm::StringRef second);

} // namespace devicetidy::driver
