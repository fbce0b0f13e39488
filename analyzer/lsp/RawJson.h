//===- RawJson.h - messages without a type of their own ---------*- C++ -*-===//
#pragma once

#include "llvm/Support/JSON.h"

namespace devicetidy::lsp {

/// JSON that is passed on as it is.
struct RawJson {
  llvm::json::Value value = nullptr;
};
inline bool fromJSON(const llvm::json::Value &json, RawJson &result, llvm::json::Path) {
  result.value = json;
  return true;
}
inline llvm::json::Value toJSON(const RawJson &raw) { return raw.value; }

} // namespace devicetidy::lsp
