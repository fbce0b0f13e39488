//===- Stores.h - the cache of the server -----------------------*- C++ -*-===//
//
// Opens the cache that the server shares with the command, and the directory for its preambles.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/BlobStore.h"
#include "analyzer/driver/options/Options.h"

#include <memory>

namespace devicetidy::lsp {

class Stores {
public:
  explicit Stores(const driver::Options &options);
  ~Stores();
  Stores(const Stores &) = delete;
  Stores &operator=(const Stores &) = delete;

  /// The cache that the command uses too; null when nothing is to be kept.
  cache::BlobStore *facts() { return kept.get(); }
  /// For preambles: the cache, or a directory for this process alone. Null when neither can be made.
  cache::BlobStore *preambles() { return kept ? kept.get() : temporary.get(); }

private:
  std::unique_ptr<cache::BlobStore> kept, temporary;
};

} // namespace devicetidy::lsp
