#include "analyzer/lsp/Documents.h"

#include "analyzer/lsp/Positions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace devicetidy::lsp {
namespace {

std::optional<cache::Stamp> stampOf(const std::string &file) { return cache::FileStates().stamp(Name(file)); }

/// The stamp is taken first, so that a change in between is seen next time.
void compareWithDisk(const std::string &file, Document &document) {
  document.disk = stampOf(file);
  const auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                                  /*IsVolatile=*/true);
  document.isSaved = buffer && (*buffer)->getBuffer() == *document.text;
}

} // namespace

void Document::compareAgain(const std::string &file) {
  if (isSaved && disk != stampOf(file))
    compareWithDisk(file, *this);
}

void Documents::open(const std::string &file, std::string uri, std::int64_t version, std::string text) {
  Document &document = documents[file];
  document.uri = std::move(uri);
  document.version = version;
  document.text = std::make_shared<std::string>(std::move(text));
  compareWithDisk(file, document);
}

bool Documents::change(const std::string &file, std::optional<std::int64_t> version,
                       const std::vector<llvm::lsp::TextDocumentContentChangeEvent> &changes) {
  const auto found = documents.find(file);
  if (found == documents.end())
    return false;
  std::string text = *found->second.text;
  for (const auto &change : changes) {
    if (!change.range) {
      text = change.text;
      continue;
    }
    const std::size_t begin = offsetOf(text, change.range->start), end = offsetOf(text, change.range->end);
    text.replace(begin, end > begin ? end - begin : 0, change.text);
  }
  found->second.text = std::make_shared<std::string>(std::move(text));
  found->second.version = version.value_or(found->second.version + 1);
  found->second.isSaved = false;
  return true;
}

void Documents::saved(const std::string &file) {
  if (const auto found = documents.find(file); found != documents.end())
    compareWithDisk(file, found->second);
}

const Document *Documents::find(const std::string &file) const {
  const auto found = documents.find(file);
  return found == documents.end() ? nullptr : &found->second;
}

const Document *Documents::findUri(const std::string &uri) const {
  const auto found = llvm::find_if(documents, [&](const auto &entry) { return entry.second.uri == uri; });
  return found == documents.end() ? nullptr : &found->second;
}

std::uint64_t stampNumber(const std::optional<cache::Stamp> &stamp) {
  cache::DigestBuilder builder;
  if (stamp)
    builder.add(stamp->size).add(stamp->inode).add(static_cast<std::uint64_t>(stamp->modified));
  return builder.finish().low;
}

std::uint64_t textNumber(const std::string &file, const DocumentMap &documents, cache::FileStates &states) {
  const auto document = documents.find(file);
  const bool isUnsaved = document != documents.end() && !document->second.isSaved;
  return isUnsaved ? cache::digestOf(*document->second.text).low : stampNumber(states.stamp(Name(file)));
}

} // namespace devicetidy::lsp
