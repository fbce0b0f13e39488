//===- WarmPreambles.h - parsed headers, ready for the next edit -*- C++ -*-===//
//
// The check whether a preamble is up to date reads the state of thousands of headers. Between two keystrokes
// it is skipped; saving or opening a file, and changes on disk, make the next use check them again.
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

  /// The preamble for a unit, made if necessary, or null when its headers allow none. It lives until the next
  /// call of refresh().
  const frontend::Preamble *preambleFor(const driver::CompileCommand &command,
                                        const frontend::UnsavedFiles &unsaved);

  /// Check them again before their next use.
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
