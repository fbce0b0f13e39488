//===- RawJson.h - JSON without a type --------------------------*- C++ -*-===//
//
// A message that is passed on unchanged.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/Support/JSON.h"

namespace devicetidy::lsp {

/// JSON that is passed on unchanged.
struct RawJson {
  llvm::json::Value value = nullptr;
};
inline bool fromJSON(const llvm::json::Value &json, RawJson &result, llvm::json::Path) {
  result.value = json;
  return true;
}
inline llvm::json::Value toJSON(const RawJson &raw) { return raw.value; }

} // namespace devicetidy::lsp
