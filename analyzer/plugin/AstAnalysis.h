//===- AstAnalysis.h - what all checks know of one tree ---------*- C++ -*-===//
#pragma once

#include "analyzer/config/Values.h"
#include "analyzer/report/diagnostic/Diagnostic.h"

#include "clang/AST/ASTContext.h"
#include "clang/Lex/Preprocessor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace devicetidy::plugin {

/// What clang-tidy was told, as far as the analysis depends on it.
struct Settings {
  config::TorchVersion torchVersion; ///< zeros: the version the code sees
  bool reportLatent = false;
  std::string buildDirectory;                      ///< where the compile command runs
  std::map<std::string, std::string> checkOptions; ///< "check.Option" -> value, of all checks

  friend bool operator==(const Settings &a, const Settings &b) {
    return a.torchVersion.major == b.torchVersion.major && a.torchVersion.minor == b.torchVersion.minor &&
           a.reportLatent == b.reportLatent && a.buildDirectory == b.buildDirectory &&
           a.checkOptions == b.checkOptions;
  }
};

/// The findings of all checks in one translation unit. Whoever asks for the same tree shares them, as long as
/// somebody holds them: the next tree may lie at the same address.
class AstAnalysis {
public:
  static std::shared_ptr<const AstAnalysis> of(clang::ASTContext &context, clang::Preprocessor &preprocessor,
                                               const Settings &settings);

  std::vector<Diagnostic> diagnostics; ///< sorted by place; with their fixes
  bool crashed = false;                ///< the analyzer failed; there are no diagnostics
};

} // namespace devicetidy::plugin
