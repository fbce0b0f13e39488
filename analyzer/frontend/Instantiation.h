//===- Instantiation.h - bodies that only libraries use ---------*- C++ -*-===//
//
// Makes clang instantiate project templates whose only users are library functions with skipped bodies.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/frontend/ProjectDecls.h"

#include "clang/Sema/ExternalSemaSource.h"
#include "clang/Sema/Sema.h"

#include <functional>

namespace devicetidy::frontend {

/// Library bodies are skipped, so a project template or an implicit constructor that only library code uses
/// (the `Net<float>` of make_shared<Net<float>>()) would never get a body. At the end of the unit, just
/// before clang instantiates what is pending, this requests those bodies.
class Instantiator : public clang::ExternalSemaSource {
public:
  using Collect = std::function<ProjectDecls()>;
  Instantiator(clang::Sema &sema, Collect collect) : sema(sema), collect(std::move(collect)) {}

  void ReadPendingInstantiations(
      llvm::SmallVectorImpl<std::pair<clang::ValueDecl *, clang::SourceLocation>> &pending) override;

private:
  bool requestAll(const ProjectDecls &decls);
  bool requestMembers(clang::CXXRecordDecl *record);
  bool requestFunction(clang::FunctionDecl *function);
  void inheritConstructors(clang::CXXRecordDecl *record);
  /// A call of a name that a missing header would have declared must not cost an instance its whole body.
  void declareUndeclared(const std::vector<clang::FunctionDecl *> &patterns);

  clang::Sema &sema;
  Collect collect;
  bool isRunning = false;
};

} // namespace devicetidy::frontend
