//===- Documents.h - the open documents -------------------------*- C++ -*-===//
//
// The text of the buffers that the editor has open, and whether it is saved.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/FileStates.h"

#include "llvm/Support/LSP/Protocol.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace devicetidy::lsp {

struct Document {
  std::string uri; ///< as the editor writes it
  std::int64_t version = 0;
  std::shared_ptr<const std::string> text;
  bool isSaved = false;             ///< the text was equal to the file when they were compared
  std::optional<cache::Stamp> disk; ///< the file's stamp then

  /// The editor decides the text of an open document. When another program changed the file since, the
  /// document no longer counts as saved.
  void compareAgain(const std::string &file);
};

/// Open documents by absolute path, without "." and "..".
using DocumentMap = std::map<std::string, Document>;

/// A number for the state of a file.
std::uint64_t stampNumber(const std::optional<cache::Stamp> &stamp);

/// A number for what the text of `file` is: that of its buffer, else what is on disk.
std::uint64_t textNumber(const std::string &file, const DocumentMap &documents, cache::FileStates &states);

class Documents {
public:
  void open(const std::string &file, std::string uri, std::int64_t version, std::string text);
  /// Applies the changes in order; false when the document is not open. Without `version` it is the next one.
  bool change(const std::string &file, std::optional<std::int64_t> version,
              const std::vector<llvm::lsp::TextDocumentContentChangeEvent> &changes);
  void saved(const std::string &file);
  void close(const std::string &file) { documents.erase(file); }

  const Document *find(const std::string &file) const;
  /// By the URI of the editor.
  const Document *findUri(const std::string &uri) const;
  const DocumentMap &all() const { return documents; }

private:
  DocumentMap documents;
};

} // namespace devicetidy::lsp
