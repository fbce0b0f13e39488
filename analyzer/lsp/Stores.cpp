#include "analyzer/lsp/Stores.h"

#include "analyzer/driver/Paths.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

namespace devicetidy::lsp {

Stores::Stores(const driver::Options &options) {
  const std::string directory = options.cacheDirectory.empty() ? cache::defaultCacheDirectory()
                                                               : driver::absolutePath(options.cacheDirectory);
  if (!options.noCache && !directory.empty())
    kept = std::make_unique<cache::BlobStore>(directory);
  llvm::SmallString<128> place;
  if (!kept && !llvm::sys::fs::createUniqueDirectory("device-tidy", place))
    temporary = std::make_unique<cache::BlobStore>(place.str().str());
}

Stores::~Stores() {
  if (kept)
    kept->trim();
  if (temporary)
    llvm::sys::fs::remove_directories(temporary->root());
}

} // namespace devicetidy::lsp
