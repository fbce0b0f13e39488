#include "analyzer/frontend/Instantiation.h"

#include "analyzer/frontend/Compat.h"

namespace devicetidy::frontend {

using namespace clang;

bool Instantiator::requestFunction(FunctionDecl *function) {
  if (function->isInvalidDecl() || function->isDeleted() || function->isDependentContext() ||
      function->hasBody() || function->isPureVirtual())
    return false;
  bool canHaveBody = function->isImplicit() || function->isDefaulted();
  if (const FunctionDecl *pattern = function->getTemplateInstantiationPattern())
    canHaveBody |= pattern->hasBody();
  if (!canHaveBody)
    return false;
  sema.MarkFunctionReferenced(function->getLocation(), function);
  return true;
}

void Instantiator::inheritConstructors(CXXRecordDecl *record) {
  llvm::SmallVector<std::pair<CXXConstructorDecl *, ConstructorUsingShadowDecl *>, 4> inherited;
  for (Decl *member : record->decls())
    if (auto *shadow = dyn_cast<ConstructorUsingShadowDecl>(member))
      if (auto *constructor = dyn_cast<CXXConstructorDecl>(shadow->getTargetDecl()))
        if (!constructor->isCopyOrMoveConstructor() && !constructor->isDefaultConstructor())
          inherited.push_back({constructor, shadow});
  for (auto [constructor, shadow] : inherited)
    sema.findInheritingConstructor(record->getLocation(), constructor, shadow);
}

bool Instantiator::requestMembers(CXXRecordDecl *record) {
  if (record->isInvalidDecl() || record->isUnion())
    return false;
  sema.ForceDeclarationOfImplicitMembers(record);
  inheritConstructors(record);
  bool asked = false;
  llvm::SmallVector<CXXMethodDecl *, 16> methods;
  for (Decl *member : record->decls())
    if (auto *method = dyn_cast<CXXMethodDecl>(member))
      methods.push_back(method);
  for (CXXMethodDecl *method : methods) {
    const auto *constructor = dyn_cast<CXXConstructorDecl>(method);
    bool isImplicit = method->isImplicit() || method->isDefaulted();
    if (isImplicit && (!constructor || constructor->isCopyOrMoveConstructor() || constructor->isTrivial()))
      continue;
    asked |= requestFunction(method);
  }
  return asked;
}

bool Instantiator::requestAll(const ProjectDecls &decls) {
  bool asked = false;
  for (ClassTemplateSpecializationDecl *instance : decls.incomplete) {
    QualType type = compat::typeOfTag(sema.Context, instance);
    asked |= sema.isCompleteType(instance->getLocation(), type);
  }
  for (CXXRecordDecl *record : decls.records)
    asked |= requestMembers(record);
  return asked;
}

void Instantiator::ReadPendingInstantiations(
    llvm::SmallVectorImpl<std::pair<ValueDecl *, SourceLocation>> &) {
  if (isRunning)
    return;
  isRunning = true;
  // What the unit itself needs comes first and reports its errors; what is forced must not.
  sema.PerformPendingInstantiations();
  DiagnosticsEngine &diagnostics = sema.getDiagnostics();
  bool wereSuppressed = diagnostics.getSuppressAllDiagnostics();
  diagnostics.setSuppressAllDiagnostics(true);
  constexpr int mostRounds = 8; // members of members of members
  for (int round = 0; round < mostRounds && requestAll(collect()); ++round)
    sema.PerformPendingInstantiations();
  diagnostics.setSuppressAllDiagnostics(wereSuppressed);
  isRunning = false;
}

} // namespace devicetidy::frontend
