#include "analyzer/lsp/Input.h"

#include "llvm/Support/FormatVariadic.h"

namespace devicetidy::lsp {

std::string idText(const llvm::json::Value &id) { return llvm::formatv("{0}", id).str(); }

llvm::LogicalResult Input::readStandardMessage(std::string &json) {
  if (llvm::failed(inner.readStandardMessage(json)))
    return llvm::failure();
  id.clear();
  llvm::Expected<llvm::json::Value> message = llvm::json::parse(json);
  if (!message) {
    llvm::lsp::Logger::error("a message is no JSON: {0}", llvm::toString(message.takeError()));
    return llvm::failure();
  }
  const llvm::json::Object *object = message->getAsObject();
  if (!object || object->getString("jsonrpc") != llvm::StringRef("2.0") ||
      !(object->getString("method") || object->get("id"))) {
    llvm::lsp::Logger::error("a message is no JSON-RPC 2.0: {0}", json);
    return llvm::failure();
  }
  if (const llvm::json::Value *found = object->get("id"))
    id = idText(*found);
  return llvm::success();
}

} // namespace devicetidy::lsp
