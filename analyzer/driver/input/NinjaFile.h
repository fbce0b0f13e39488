//===- NinjaFile.h - the link edges of a build.ninja ------------*- C++ -*-===//
//
// Reads the link lines of a build from Ninja files. They say which objects form a program.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::driver {

/// An edge that links or archives, with paths as written.
struct NinjaLink {
  std::vector<std::string> outputs;
  std::vector<std::string> inputs; ///< explicit and implicit ones, and the words of the link line
};

struct NinjaFile {
  std::vector<NinjaLink> links;
  std::vector<std::string> includes; ///< include and subninja
};

/// Reads the parts of a build.ninja that say what is linked (https://ninja-build.org/manual.html, "Ninja file
/// reference"): the edges whose rule is called after linking, like CXX_EXECUTABLE_LINKER__app_ and
/// CXX_STATIC_LIBRARY_LINKER__lib_ of CMake, cpp_LINKER and STATIC_LINKER of Meson, solink of GN. Everything
/// else is skipped.
NinjaFile readNinjaFile(std::string_view text);

} // namespace devicetidy::driver
