//===- Git.h - runs git -----------------------------------------*- C++ -*-===//
//
// Runs commands of git in one directory and returns their output.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

/// The result of a git command.
struct GitResult {
  int status = -1;
  std::string output;
  std::string errors; ///< without white space around it
};

/// Runs git in one directory.
class Git {
public:
  /// Whose repository the variables GIT_DIR, GIT_INDEX_FILE and so on describe, when git has started us.
  enum class Variables { OfThisRepository, OfAnother };

  explicit Git(std::string directory, Variables variables = Variables::OfThisRepository);

  bool isInstalled() const { return !program.empty(); }
  const std::string &place() const { return directory; }

  GitResult run(std::vector<llvm::StringRef> arguments) const;

  /// Is there a commit with this name?
  bool knows(const std::string &commit) const;

  /// The name of the tree without files.
  GitResult emptyTree() const { return run({"hash-object", "-t", "tree", "/dev/null"}); }

private:
  std::vector<llvm::StringRef> environment() const;

  std::string directory, program;
  Variables variables;
};

} // namespace devicetidy::driver
