//===- UnitBuilder.h - what all functions of a unit share -------*- C++ -*-===//
//
// The state of lowering one unit: its names, types and globals, and where its errors are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/frontend/LostCode.h"
#include "analyzer/frontend/Lower.h"
#include "analyzer/frontend/Naming.h"
#include "analyzer/frontend/SourceFiles.h"
#include "analyzer/frontend/Types.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <vector>

namespace devicetidy::frontend {

/// The name of a structured binding in messages: "[a, b]".
Name bindingNames(const clang::DecompositionDecl *decl);

class UnitBuilder {
public:
  UnitBuilder(clang::ASTContext &context, Unit &unit, const LowerOptions &options);

  clang::ASTContext &context;
  Unit &unit;
  SourceFiles source;
  Naming naming;
  Types types;

  /// Places of parse errors, around which functions are not intact, and what the preprocessor left out.
  void setErrors(const std::vector<clang::SourceLocation> &locations,
                 const std::vector<clang::SourceRange> &skippedRanges);

  /// Is this function written in project code (or an instantiation or an implicit member of what is)?
  bool isProject(const clang::FunctionDecl *function);

  /// A class that only renames a library base (TORCH_MODULE) is constructed like its base: the
  /// library constructor behind `constructor`, or `constructor` itself.
  const clang::CXXConstructorDecl *wrappedConstructor(const clang::CXXConstructorDecl *constructor);

  /// The entry of `function` in the unit, with its signature; bodies are added by lowering.
  Function &declare(const clang::FunctionDecl *function);

  /// Entry of a global or static variable; returns its id.
  Name global(const clang::VarDecl *variable);

  /// Lowers `function` later, once, when it has a body here.
  void request(const clang::FunctionDecl *function);
  /// The variable is initialised by the synthetic function that initialises globals.
  void requestGlobal(const clang::VarDecl *variable);
  /// Lowers everything requested, including what that requests in turn.
  void lowerRequested();

private:
  void lower(const clang::FunctionDecl *function);
  /// The companions of a constructor with default arguments (delegationMark in Program.h).
  void lowerCompanions(const clang::CXXConstructorDecl *constructor);
  Name companion(const clang::CXXConstructorDecl *constructor, unsigned given);
  void lowerGlobals();
  void declareMembers(const clang::CXXRecordDecl *record);
  bool hasErrorWithin(clang::SourceLocation begin, clang::SourceLocation end) const;
  bool isBroken(const clang::FunctionDecl *function) const;
  /// What the broken `function` lost; nothing when the rest of it cannot be told.
  std::optional<LostCode> lostIn(const clang::FunctionDecl *function) const;

  std::vector<std::pair<clang::FileID, unsigned>> errors;
  std::vector<SkippedText> skipped;
  std::vector<const clang::FunctionDecl *> pending;
  llvm::DenseSet<const clang::Decl *> requested;
  std::vector<const clang::VarDecl *> globals;
  llvm::DenseSet<const clang::Decl *> requestedGlobals;
};

} // namespace devicetidy::frontend
