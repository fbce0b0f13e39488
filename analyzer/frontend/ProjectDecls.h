//===- ProjectDecls.h - the declarations of project code --------*- C++ -*-===//
//
// Collects the functions, classes and variables of a unit that are lowered.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/frontend/SourceFiles.h"

#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace devicetidy::frontend {

/// Functions, classes and variables of project code, instantiations included, in the order of the source.
struct ProjectDecls {
  std::vector<clang::FunctionDecl *> functions;
  std::vector<clang::CXXRecordDecl *> records;
  std::vector<clang::ClassTemplateSpecializationDecl *>
      incomplete; ///< specialisations that were not needed complete yet
  std::vector<clang::VarDecl *> variables;
  std::vector<clang::FunctionDecl *> patterns; ///< bodies that only instances of a template have
};

/// Walks declarations, skipping everything outside the project.
class ProjectDeclCollector {
public:
  explicit ProjectDeclCollector(SourceFiles &source) : source(source) {}

  ProjectDecls collect(const std::vector<clang::Decl *> &topLevel);

private:
  void visit(clang::Decl *decl);
  void visitContext(clang::DeclContext *context);
  void visitFunction(clang::FunctionDecl *function);
  void visitRecord(clang::CXXRecordDecl *record);
  void visitClassTemplate(clang::ClassTemplateDecl *pattern);
  void visitPattern(clang::FunctionDecl *function);
  void visitLocals(clang::FunctionDecl *function);

  SourceFiles &source;
  ProjectDecls result;
  llvm::DenseSet<const clang::Decl *> seen;
};

} // namespace devicetidy::frontend
