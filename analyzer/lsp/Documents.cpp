#include "analyzer/lsp/Documents.h"

#include "analyzer/lsp/Positions.h"

#include "llvm/Support/MemoryBuffer.h"

namespace devicetidy::lsp {
namespace {

bool isOnDisk(const std::string &file, const std::string &text) {
  const auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                                  /*IsVolatile=*/true);
  return buffer && (*buffer)->getBuffer() == text;
}

} // namespace

void Documents::open(const std::string &file, std::string uri, std::int64_t version, std::string text) {
  const bool isSaved = isOnDisk(file, text);
  documents[file] = {std::move(uri), version, std::make_shared<std::string>(std::move(text)), isSaved};
}

bool Documents::change(const std::string &file, std::int64_t version,
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
  found->second.version = version;
  found->second.isSaved = false;
  return true;
}

void Documents::saved(const std::string &file) {
  if (const auto found = documents.find(file); found != documents.end())
    found->second.isSaved = isOnDisk(file, *found->second.text);
}

const Document *Documents::find(const std::string &file) const {
  const auto found = documents.find(file);
  return found == documents.end() ? nullptr : &found->second;
}

} // namespace devicetidy::lsp
