//===- UnitCache.h - facts of translation units, kept on disk ---*- C++ -*-===//
//
// An entry belongs to a compile command, the tool and the environment (the key) and lists all that the parse
// looked at on disk. The thousands of third-party headers behind torch/torch.h are the same for most units,
// so their list is a blob of its own that entries refer to, and that a run reads and checks once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/BlobStore.h"
#include "analyzer/cache/Inputs.h"
#include "analyzer/facts/Program.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace devicetidy::cache {

/// A unit, and what identifies its facts.
struct CachedUnit {
  Unit unit;
  Digest facts; ///< of everything in it but the lists of files and objects
};

class UnitCache {
public:
  UnitCache(BlobStore &store, FileStates &states, IsProjectFile isProject);

  static Digest key(const std::string &directory, const std::string &file,
                    const std::vector<std::string> &arguments);

  /// The facts of an earlier run, when all they were made from is unchanged. Unit::objects is not among them:
  /// where the build puts the result changes no parse.
  std::optional<CachedUnit> find(const Digest &key);

  /// Keeps `unit`, unless what it was made from has changed since. Returns the digest of the facts.
  Digest keep(const Digest &key, const Unit &unit, const FileTrace &trace);

private:
  /// A shared list of third-party inputs.
  struct InputSet {
    Digest name;
    Inputs inputs;
    std::vector<std::string> absentPaths; ///< all of them, sorted
    std::vector<Name> sources;            ///< sorted
    Freshness freshness = Freshness::Stale;
  };
  using SetPointer = std::shared_ptr<const InputSet>;

  SetPointer openSet(const Digest &name);
  SetPointer describe(const Digest &name, Inputs inputs) const;
  SetPointer pickSet(const Inputs &thirdParty);
  void writeEntry(const Digest &key, const InputSet *set, const Inputs &own, std::string_view facts);
  /// The rest of `all` after `set` took its part.
  static Inputs without(const Inputs &all, const InputSet &set);

  BlobStore &store;
  FileStates &states;
  IsProjectFile isProject;
  std::mutex mutex;
  std::map<Digest, SetPointer> sets;
};

} // namespace devicetidy::cache
