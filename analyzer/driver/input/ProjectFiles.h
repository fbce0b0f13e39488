//===- ProjectFiles.h - which code belongs to the project -------*- C++ -*-===//
//
// Tells project code, which is analysed, from third-party code, of which only declarations are read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/input/CompileDatabase.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// What reports need to know about project code.
struct ProjectView {
  std::function<bool(const std::string &)> isProject;
  std::vector<std::string> roots; ///< the one that file names in reports are relative to comes first
};

/// Tells project code from third-party code. Project code is the code below a project root: the source
/// directory that CMake was configured for, the git repository a source file is in, or else the directory
/// with the compile database of the sources below it, or the one that all sources share. Inside a root,
/// vendored code is not project code: a copy of LibTorch, directories named third_party or similar,
/// directories that are searched with -isystem, and large headers that never mention LibTorch.
class ProjectFiles {
public:
  /// `roots` replace those that would be detected.
  explicit ProjectFiles(const CommandSet &commands, const std::vector<std::string> &roots = {});

  /// Is the file (absolute, without "." and "..") project code? Files to be analysed always are.
  bool isProject(const std::string &file) const;

  /// Is the file in the user's own tree, and not vendored?
  bool isOwnPlace(const std::string &file) const;

  const std::vector<std::string> &projectRoots() const { return roots; }

private:
  void addRoot(const std::string &directory);
  void findRoots(const std::vector<std::string> &files, const std::string &databaseDirectory);
  /// What `judge` says of a folder or file, asked once.
  bool once(const std::string &place, llvm::function_ref<bool()> judge) const;
  bool judgeDirectory(const std::string &directory) const;

  std::vector<std::string> roots;
  std::vector<std::string> systemDirectories; ///< below a root
  std::set<std::string> sources;
  mutable std::mutex mutex;
  mutable std::map<std::string, bool> known; ///< folder or file -> verdict
};

} // namespace devicetidy::driver
