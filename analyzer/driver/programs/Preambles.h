//===- Preambles.h - which units share parsed headers -----------*- C++ -*-===//
//
// Units with equal flags that read LibTorch's headers share one preamble (frontend/Preamble.h) of the headers
// they all include. It is kept in the cache; a unit edited later finds it there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/BlobStore.h"
#include "analyzer/cache/Inputs.h"
#include "analyzer/driver/input/CompileDatabase.h"
#include "analyzer/frontend/Preamble.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// When a missing preamble is made.
enum class MakePreamble {
  WhenQuicker, ///< than parsing its headers once per unit
  Always,      ///< the units will be parsed again and again
};

class Preambles {
public:
  /// `jobs` units are parsed at a time.
  Preambles(cache::BlobStore &store, cache::FileStates &states, const frontend::LowerOptions &options,
            unsigned jobs, MakePreamble policy = MakePreamble::WhenQuicker,
            const frontend::UnsavedFiles *unsaved = nullptr)
      : store(store), states(states), options(options), jobs(jobs), policy(policy), unsaved(unsaved) {}

  /// `notice` is called with true before a preamble is made, which takes seconds, and with false after.
  void onMaking(std::function<void(bool)> notice) { making = std::move(notice); }

  /// The preamble each unit should be parsed with, or null: taken from the cache, or made where the policy
  /// says so. They live as long as this object.
  std::vector<const frontend::Preamble *> choose(const std::vector<const CompileCommand *> &commands);

  std::size_t made() const { return builtCount; }

private:
  using Headers = std::vector<std::string>;

  /// A preamble in the cache.
  struct Kept {
    Headers headers;
    cache::Digest binary;
    cache::Inputs inputs;
    std::vector<std::uint32_t> identifiers; ///< Preamble::identifiers; empty until needed
  };

  /// What a unit includes that a preamble may hold.
  struct Leading {
    Headers headers;
    std::vector<std::string> macros; ///< of the unit itself, before one of them
  };

  /// Units with equal flags.
  struct FlagSet {
    const CompileCommand *example = nullptr;
    cache::Digest name;
    std::vector<std::size_t> units;
    std::vector<Kept> kept;
  };

  void chooseFor(FlagSet &flags);
  bool isWorthMaking(std::size_t units) const;
  Leading leadingOf(const CompileCommand &command) const;
  void takeKept(FlagSet &flags, std::vector<std::size_t> &open);
  bool contradicts(Kept &kept, const Leading &unit);
  const frontend::Preamble *open(const FlagSet &flags, const Kept &kept);
  const frontend::Preamble *build(FlagSet &flags, const Headers &headers);
  bool parse(const FlagSet &flags, frontend::Preamble &preamble);
  std::vector<Kept> readKept(const cache::Digest &name);
  void writeKept(const FlagSet &flags);
  std::string headerFile(const Headers &headers) const;

  cache::BlobStore &store;
  cache::FileStates &states;
  const frontend::LowerOptions &options;
  const unsigned jobs;
  const MakePreamble policy;
  const frontend::UnsavedFiles *const unsaved;
  std::vector<Leading> leading; ///< of each unit
  std::vector<const frontend::Preamble *> chosen;
  std::deque<frontend::Preamble> preambles;
  std::size_t builtCount = 0;
  std::function<void(bool)> making = [](bool) {};
};

} // namespace devicetidy::driver
