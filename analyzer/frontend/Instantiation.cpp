#include "analyzer/frontend/Instantiation.h"

#include "analyzer/frontend/Compat.h"

#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Sema/Lookup.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

// Names that templates call and that nothing had declared where they were written.
class UndeclaredCalls : public RecursiveASTVisitor<UndeclaredCalls> {
public:
  bool VisitCallExpr(CallExpr *call) {
    const auto *callee = dyn_cast<UnresolvedLookupExpr>(call->getCallee()->IgnoreParens());
    if (callee && callee->getNumDecls() == 0 && !callee->getQualifier() && callee->getName().isIdentifier())
      names.push_back(callee->getNameInfo());
    return true;
  }

  std::vector<DeclarationNameInfo> names;
};

} // namespace

void Instantiator::declareUndeclared(const std::vector<FunctionDecl *> &patterns) {
  UndeclaredCalls calls;
  for (FunctionDecl *pattern : patterns)
    calls.TraverseStmt(pattern->getBody());
  ASTContext &context = sema.Context;
  FunctionProtoType::ExtProtoInfo takesAnything;
  takesAnything.Variadic = true;
  for (const DeclarationNameInfo &name : calls.names) {
    TranslationUnitDecl *unit = context.getTranslationUnitDecl();
    LookupResult known(sema, name, Sema::LookupOrdinaryName);
    if (sema.LookupQualifiedName(known, unit))
      continue;
    const QualType type = context.getFunctionType(context.IntTy, {}, takesAnything);
    unit->addDecl(FunctionDecl::Create(context, unit, name.getLoc(), name.getLoc(), name.getName(), type,
                                       nullptr, SC_Extern));
  }
}

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
  if (sema.getDiagnostics().hasErrorOccurred())
    declareUndeclared(collect().patterns);
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
