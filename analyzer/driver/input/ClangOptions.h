//===- ClangOptions.h - clang's own table of command-line options -*- C++ -*-===//
//
// The table moved between LLVM releases; this header hides where it is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "clang/Basic/Version.h"
#if CLANG_VERSION_MAJOR >= 22
#include "clang/Options/Options.h"
#else
#include "clang/Driver/Options.h"
#endif

#include "llvm/Option/Arg.h"
#include "llvm/Option/ArgList.h"

namespace devicetidy::driver {

#if CLANG_VERSION_MAJOR >= 22
namespace options = clang::options;
inline const llvm::opt::OptTable &clangOptions() { return clang::getDriverOptTable(); }
#else
namespace options = clang::driver::options;
inline const llvm::opt::OptTable &clangOptions() { return clang::driver::getDriverOptTable(); }
#endif

} // namespace devicetidy::driver
