#include "analyzer/lsp/Stores.h"

#include "analyzer/driver/support/Paths.h"
#include "analyzer/driver/support/TemporaryDirectory.h"

namespace devicetidy::lsp {

Stores::Stores(const driver::Options &options) {
  const std::string directory = options.cacheDirectory.empty() ? cache::defaultCacheDirectory()
                                                               : driver::absolutePath(options.cacheDirectory);
  if (!options.noCache && !directory.empty())
    kept = std::make_unique<cache::BlobStore>(directory);
  if (const std::string place = kept ? std::string() : driver::makeTemporaryDirectory(); !place.empty())
    temporary = std::make_unique<cache::BlobStore>(place);
}

Stores::~Stores() {
  if (kept)
    kept->trim();
  if (temporary)
    driver::removeTemporaryDirectory(temporary->root());
}

} // namespace devicetidy::lsp
