//===- Inputs.h - the inputs of facts ---------------------------*- C++ -*-===//
//
// The files, missing paths and directories that the facts of a unit depend on, and the check whether they
// are unchanged.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/Bytes.h"
#include "analyzer/cache/FileStates.h"
#include "analyzer/facts/FileTrace.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace devicetidy::cache {

using IsProjectFile = std::function<bool(const std::string &path)>;

/// A file that was read.
struct InputFile {
  Name path;
  Stamp stamp;
  Digest digest;
  bool isProject = false; ///< what the answer was; the facts depend on it
  bool isSource = false;  ///< part of the program text (one of Unit::files)

  friend bool operator<(const InputFile &a, const InputFile &b) { return a.path < b.path; }
};

/// Paths that named nothing. While the directory above them has its stamp, nothing can have appeared.
struct AbsentFiles {
  Name directory;
  Stamp stamp;
  std::vector<std::string> paths; ///< sorted
};

/// A directory whose contents were listed.
struct ListedDirectory {
  Name path;
  Stamp stamp;
};

enum class Freshness {
  Stale,
  Fresh,
  Touched, ///< fresh, but some stamps are not what they were: a new record would be quicker to check
};

/// All that was looked at on disk.
struct Inputs {
  std::vector<InputFile> files; ///< by path
  std::vector<AbsentFiles> absent;
  std::vector<ListedDirectory> directories;

  /// Is everything on disk as it was?
  Freshness check(FileStates &states, const IsProjectFile &isProject) const;

  /// The current stamps, for use after check() returned Touched.
  void renew(FileStates &states);

  void write(ByteWriter &writer) const;
  static std::optional<Inputs> read(ByteReader &reader);
};

/// The inputs a trace tells of. Nothing when a file is not what it was during the parse any more: what was
/// read then is unknown. `sources` (sorted) are the files that are program text.
std::optional<Inputs> makeInputs(const FileTrace &trace, const std::vector<Name> &sources, FileStates &states,
                                 const IsProjectFile &isProject);

} // namespace devicetidy::cache
