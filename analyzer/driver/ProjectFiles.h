//===- ProjectFiles.h - which code is the user's own ------------*- C++ -*-===//
#pragma once

#include "analyzer/driver/CompileDatabase.h"

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// Knows project code from third-party code. Project code is what lies under a project root: the source
/// directory that CMake was configured for, the git repository a source file is in, or else the directory
/// that all sources share. Inside a root, vendored code is not project code: a copy of LibTorch, directories
/// called third_party or the like, and directories that are searched with -isystem.
class ProjectFiles {
public:
  explicit ProjectFiles(const CommandSet &commands);

  /// Is the file (absolute, without "." and "..") project code? Files to be analysed always are.
  bool isProject(const std::string &file) const;

  /// Is the file in the user's own tree, as opposed to a vendored one, judged by its place alone?
  bool isOwnPlace(const std::string &file) const;

  const std::vector<std::string> &projectRoots() const { return roots; }

private:
  void addRoot(const std::string &directory);
  bool isOwnDirectory(const std::string &directory) const;
  bool judgeDirectory(const std::string &directory) const;

  std::vector<std::string> roots;
  std::vector<std::string> systemDirectories; ///< below a root
  std::set<std::string> sources;
  mutable std::mutex mutex;
  mutable std::map<std::string, bool> known; ///< directory -> verdict
};

} // namespace devicetidy::driver
