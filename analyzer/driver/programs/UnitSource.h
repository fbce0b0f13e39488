//===- UnitSource.h - which units take part in a run ------------*- C++ -*-===//
//
// Selects the units of a run and gets their facts from the cache or the parser.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/input/CompileDatabase.h"
#include "analyzer/driver/options/Options.h"
#include "analyzer/driver/programs/ReadUnits.h"

#include <memory>
#include <string>

namespace devicetidy::driver {

/// The cache of the user, or that of --cache-dir; null when nothing is to be kept.
std::unique_ptr<cache::BlobStore> openCache(const Options &options);

/// Clears the cache. Returns an error message, or empty.
std::string clearCache(const Options &options);

/// Returns the units of a run, with the cached results of earlier runs.
///
/// Without FILES every unit of the compile database takes part. With FILES it is those, and for context every
/// other unit whose facts are in the cache and up to date; --whole-program reads the rest as well.
class UnitSource {
public:
  explicit UnitSource(const Options &options);
  ~UnitSource();

  UnitSet read(const CommandSet &commands, const ProjectFiles &project);

  /// Keeps the cache within its bounds; the reason when it could not be written to, else empty.
  std::string finish();

private:
  const Options &options;
  std::unique_ptr<cache::BlobStore> store;
  std::unique_ptr<cache::BlobStore> temporary; ///< for preambles, when nothing is kept
  cache::FileStates states;
  std::unique_ptr<cache::UnitCache> units;
};

} // namespace devicetidy::driver
