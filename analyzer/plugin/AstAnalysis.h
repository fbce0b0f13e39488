//===- AstAnalysis.h - the analysis of one tree, for all checks -*- C++ -*-===//
//
// Lowers and solves a translation unit once for all device checks of the clang-tidy plugin.
//
//===----------------------------------------------------------------------===//
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

/// The settings of clang-tidy that the analysis depends on.
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

/// The findings of all checks in one translation unit. All users of the same tree share them for as long as
/// one of them holds them; after that another tree may have the same address.
class AstAnalysis {
public:
  static std::shared_ptr<const AstAnalysis> of(clang::ASTContext &context, clang::Preprocessor &preprocessor,
                                               const Settings &settings);

  std::vector<Diagnostic> diagnostics; ///< sorted by place; with their fixes
  bool crashed = false;                ///< the analyzer failed; there are no diagnostics
};

} // namespace devicetidy::plugin
