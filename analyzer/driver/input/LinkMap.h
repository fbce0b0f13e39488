//===- LinkMap.h - what the build system links ------------------*- C++ -*-===//
//
// Which objects and libraries form which executable, according to the build files: build.ninja (CMake and
// Meson), and the CMakeFiles/TARGET.dir/link.txt of CMake's Makefiles.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// An executable, or a library that nothing in the build links. All paths are absolute.
struct LinkedImage {
  std::string path;
  std::set<std::string> objects;        ///< given to the linker directly: all are part of the image
  std::set<std::string> libraryObjects; ///< in the libraries it links, and in those that these link
};

class LinkMap {
public:
  /// Reads the build files of the builds that made the objects of `units`. Builds without such files, and
  /// files that cannot be read, are left out; the latter are listed in `problems`.
  static LinkMap of(const std::vector<Unit> &units);

  /// Records that the linker or archiver makes `output` from `inputs`. May be called again for the same
  /// output. Inputs that are neither objects nor outputs do not matter.
  void addLink(const std::string &output, const std::vector<std::string> &inputs);

  /// Reads the build below `root`. False when it has neither build.ninja nor CMake's list of targets.
  bool readBuild(const std::string &root);

  /// By path.
  std::vector<LinkedImage> images() const;

  std::vector<std::string> problems; ///< "FILE: reason", for --stats

private:
  void readNinja(const std::string &file, const std::string &root, unsigned depth);
  void readLinkCommands(const std::string &list);
  void readLinkCommand(const std::string &file);

  std::map<std::string, std::set<std::string>> inputsOf;
};

/// Is this the name of an archive or a shared library? Any other linked output is an executable.
bool isLibraryName(const std::string &path);

} // namespace devicetidy::driver
