//===- Includers.h - sources that include a header --------------*- C++ -*-===//
//
// A compile database lists no headers. What a header means depends on the source that includes it, so it is
// analysed as a part of one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"

#include <functional>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// A source and how it is compiled.
struct IncludingSource {
  std::string file, directory; ///< both absolute
  std::vector<std::string> arguments;
};

/// Looks for sources that include a header, by the text of their #include lines alone: conditions are taken
/// to be true and macros are not expanded. Every file is read once.
class Includers {
public:
  /// `isProjectFile` says which files' own includes are followed.
  Includers(std::vector<IncludingSource> sources, std::function<bool(const std::string &)> isProjectFile)
      : sources(std::move(sources)), isProjectFile(std::move(isProjectFile)) {}

  /// The best source to analyse for `header` (absolute): of those that include it, directly or not, the
  /// one of the same name, else the nearest by folder. Null when none does. `spelled` receives the path by
  /// which that source reads the header: another one when a symbolic link leads to it.
  const IncludingSource *find(const std::string &header, std::string &spelled);

private:
  struct Include {
    std::string name;
    bool isQuoted;
  };
  /// The relevant arguments of the command line.
  struct Flags {
    std::vector<std::string> quoted, all; ///< folders
    std::vector<std::string> forced;      ///< headers of -include, as written
  };
  const std::vector<Include> &includesOf(const std::string &file);
  static Flags flagsOf(const IncludingSource &source);
  /// The path by which the source reads the file that `header` is; empty when it does not.
  std::string pathFrom(const IncludingSource &source, const llvm::sys::fs::UniqueID &header);

  std::vector<IncludingSource> sources;
  std::function<bool(const std::string &)> isProjectFile;
  llvm::StringMap<std::vector<Include>> known;
};

} // namespace devicetidy::driver
