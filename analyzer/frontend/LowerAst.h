//===- LowerAst.h - from syntax trees to facts ------------------*- C++ -*-===//
//
// Lowers a syntax tree that is already parsed. Lower.h parses and then uses this; the clang-tidy plugin
// uses it directly.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/frontend/UnitBuilder.h"

#include "clang/Lex/Preprocessor.h"

#include <vector>

namespace devicetidy::frontend {

/// Lowers the project code of the declarations `topLevel` into the unit of `builder`, and notes the version
/// of LibTorch and the files that the code saw.
void lowerDeclarations(const std::vector<clang::Decl *> &topLevel, clang::Preprocessor &preprocessor,
                       UnitBuilder &builder);

/// Lowers the whole tree of a translation unit that was parsed elsewhere, bodies of libraries included, as
/// clang-tidy does. The tree must be free of errors.
Unit lowerAst(clang::ASTContext &context, clang::Preprocessor &preprocessor, const LowerOptions &options);

} // namespace devicetidy::frontend
