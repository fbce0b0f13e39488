//===- ModuleCache.h - facts of modules that import each other --*- C++ -*-===//
//
// The facts of a module of a scripting language depend on its file, on where its imports were looked for, and
// on the files of all modules that it leads to. An entry lists the first two and has a digest of the third,
// so the entries of a project are as large as the project, whoever imports whom.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/BlobStore.h"
#include "analyzer/cache/Inputs.h"
#include "analyzer/facts/Program.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace devicetidy::cache {

struct CachedModule {
  Unit unit;
  std::vector<std::string> imports; ///< paths
};

/// A module that was read.
struct ReadModule {
  std::string path;
  const Unit *unit = nullptr; ///< null: it is not to be kept
  FileTrace trace;            ///< of its file and of the search for its imports
  std::vector<std::string> imports;
};

class ModuleCache {
public:
  /// `reader` identifies who makes facts of the files, besides this program. `around`: what stands beside the
  /// file of a path that the facts depend on.
  ModuleCache(BlobStore &store, FileStates &states, const Digest &reader,
              std::function<std::uint64_t(const std::string &)> around)
      : store(store), states(states), reader(reader), around(std::move(around)) {}

  /// Of `paths` and the modules that they lead to, those whose facts were kept and are those of what is on
  /// disk; by path.
  std::map<std::string, CachedModule> find(const std::vector<std::string> &paths);

  /// Keeps modules; all that they import must be among them.
  void keep(const std::vector<ReadModule> &modules);

private:
  struct Entry {
    Inputs inputs;
    std::vector<std::string> imports;
    Digest closure; ///< of the files of all modules that it leads to, itself among them
    std::string facts;
  };
  using Entries = std::map<std::string, Entry>;

  Digest key(const std::string &path) const;
  bool load(const std::string &path, Entry &entry, Freshness &freshness);
  void write(const std::string &path, const Entry &entry);
  /// Of the modules that each module leads to, by path; nothing for one that leads to an unknown one.
  static std::map<std::string, Digest> closures(const Entries &entries);

  BlobStore &store;
  FileStates &states;
  const Digest reader;
  const std::function<std::uint64_t(const std::string &)> around;
};

} // namespace devicetidy::cache
