#include "analyzer/lsp/Input.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cerrno>
#include <optional>

namespace devicetidy::lsp {

std::string idText(const llvm::json::Value &id) { return llvm::formatv("{0}", id).str(); }

/// EOF at the end of the input, or when it cannot be read.
int Input::nextCharacter() {
  while (true) {
    const int next = std::getc(file);
    if (next != EOF || std::feof(file) || errno != EINTR)
      return next;
    std::clearerr(file); // a signal came in between
  }
}

/// A line without its end; false when there is none.
bool Input::readLine(std::string &line) {
  line.clear();
  int next = nextCharacter();
  for (; next != EOF && next != '\n'; next = nextCharacter())
    line += static_cast<char>(next);
  if (!line.empty() && line.back() == '\r')
    line.pop_back();
  return next != EOF;
}

/// A length that no message has must not take the memory: it grows with what comes.
bool Input::readBody(std::size_t length, std::string &body) {
  constexpr std::size_t step = std::size_t{1} << 20;
  body.clear();
  while (body.size() < length) {
    const std::size_t done = body.size();
    body.resize(std::min(length, done + step));
    errno = 0;
    body.resize(done + std::fread(body.data() + done, 1, body.size() - done, file));
    if (std::feof(file) || (std::ferror(file) && errno != EINTR))
      return body.size() == length;
    std::clearerr(file);
  }
  return true;
}

/// The next message's text, behind its headers.
bool Input::readFramed(std::string &body) {
  std::optional<std::size_t> length;
  std::string line;
  bool hasHeaders = false;
  while (readLine(line)) {
    if (line.empty() && hasHeaders)
      break;
    hasHeaders |= !line.empty();
    const auto [name, value] = llvm::StringRef(line).split(':');
    std::size_t number = 0;
    if (name.trim().equals_insensitive("Content-Length") && !value.trim().getAsInteger(10, number))
      length = number;
  }
  if (length)
    return readBody(*length, body);
  if (!isEndOfInput() && !hasError())
    llvm::lsp::Logger::error(
        "a message has no Content-Length; the following bytes are read as the next message");
  return false;
}

llvm::LogicalResult Input::readStandardMessage(std::string &json) {
  if (!readFramed(json))
    return llvm::failure();
  id.clear();
  llvm::Expected<llvm::json::Value> message = llvm::json::parse(json);
  if (!message) {
    llvm::lsp::Logger::error("a message is not valid JSON: {0}", llvm::toString(message.takeError()));
    return llvm::failure();
  }
  const llvm::json::Object *object = message->getAsObject();
  if (!object || object->getString("jsonrpc") != llvm::StringRef("2.0") ||
      !(object->getString("method") || object->get("id"))) {
    llvm::lsp::Logger::error("a message is not JSON-RPC 2.0: {0}", json);
    return llvm::failure();
  }
  if (const llvm::json::Value *found = object->get("id"))
    id = idText(*found);
  return llvm::success();
}

} // namespace devicetidy::lsp
