//===- FileReport.h - what an analysis says of one file ---------*- C++ -*-===//
//
// Everything an editor may request for a file, in positions of the protocol, so that an answer needs neither
// the program nor the text it was made from.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/solution/Solution.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Protocol.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace devicetidy::lsp {

struct ShownFix {
  std::string title;
  std::string uri;
  std::optional<std::int64_t> version; ///< of the document that it was made for; none for a file on disk
  llvm::lsp::Range range;
  std::string newText;
};

struct ShownFinding {
  llvm::lsp::Range range;
  llvm::json::Value diagnostic = nullptr; ///< as it is published
  std::optional<ShownFix> fix;
  std::optional<ShownFix> suppression; ///< a comment
};

/// One step that put an expression where it is.
struct ShownStep {
  std::string text;
  std::string place; ///< "train.cpp:12"
  std::string uri;
  llvm::lsp::Range range;
};

/// An expression and where it lives.
struct ShownPlacement {
  llvm::lsp::Range range;
  std::vector<PlacedExpression> devices; ///< at least one; their histories are in `histories`
  PlacedKind kind = PlacedKind::Tensor;
  bool isDeclaration = false, isOpen = false;
  std::vector<std::vector<ShownStep>> histories; ///< for each device, oldest first
  std::vector<ShownStep> placing; ///< for each device the step that decided it, where there is one

  /// "'x' is a tensor on cpu or cuda:0"; empty for what lives on no device.
  std::string sentence() const;
  /// "cpu or cuda:0"
  std::string label() const;
};

struct FileReport {
  std::string uri;
  std::optional<std::int64_t> version; ///< of the document; none for a file that is not open
  std::vector<ShownFinding> findings;
  std::vector<ShownFix> repairs; ///< of findings wherever they are, those that change this file and agree
  std::vector<ShownPlacement> placements;

  /// The innermost expression at `position`, or null.
  const ShownPlacement *placementAt(const llvm::lsp::Position &position) const;
};
using ReportPointer = std::shared_ptr<const FileReport>;

} // namespace devicetidy::lsp
