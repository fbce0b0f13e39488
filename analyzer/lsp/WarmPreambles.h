//===- WarmPreambles.h - parsed headers, ready for the next edit -*- C++ -*-===//
//
// Checking that a preamble is still true looks at thousands of headers. Between two keystrokes they are taken
// to be unchanged; saving or opening a file, and what others do on disk, has them looked at again.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/programs/Preambles.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace devicetidy::lsp {

class WarmPreambles {
public:
  /// `making`: see driver::Preambles::onMaking.
  WarmPreambles(cache::BlobStore &store, frontend::LowerOptions options, std::function<void(bool)> making)
      : store(store), options(std::move(options)), making(std::move(making)) {}

  /// The preamble for a unit, made if need be, or null when its headers allow none. It lives until the next
  /// call of refresh().
  const frontend::Preamble *preambleFor(const driver::CompileCommand &command,
                                        const frontend::UnsavedFiles &unsaved);

  /// Have them looked at again before they are used next.
  void refresh() { kept.clear(); }

private:
  struct Kept {
    std::unique_ptr<cache::FileStates> states;
    std::unique_ptr<driver::Preambles> owner;
    const frontend::Preamble *preamble = nullptr;
  };
  /// Directory, flags and the headers that come first.
  using Key = std::pair<std::string, std::vector<std::string>>;

  cache::BlobStore &store;
  const frontend::LowerOptions options;
  const std::function<void(bool)> making;
  std::map<Key, Kept> kept;
};

} // namespace devicetidy::lsp
