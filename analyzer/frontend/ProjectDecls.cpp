#include "analyzer/frontend/ProjectDecls.h"

namespace devicetidy::frontend {

using namespace clang;

ProjectDecls ProjectDeclCollector::collect(const std::vector<Decl *> &topLevel) {
  result = {};
  seen.clear();
  for (Decl *decl : topLevel)
    visit(decl);
  return std::move(result);
}

void ProjectDeclCollector::visitContext(DeclContext *context) {
  for (Decl *decl : context->decls())
    visit(decl);
}

void ProjectDeclCollector::visit(Decl *decl) {
  if (!source.inProject(decl->getLocation()))
    return;
  if (isa<NamespaceDecl, LinkageSpecDecl, ExportDecl>(decl)) {
    visitContext(cast<DeclContext>(decl));
  } else if (auto *function = dyn_cast<FunctionDecl>(decl)) {
    visitFunction(function);
  } else if (auto *functions = dyn_cast<FunctionTemplateDecl>(decl)) {
    visitPattern(functions->getTemplatedDecl());
    for (FunctionDecl *instance : functions->specializations())
      visitFunction(instance);
  } else if (auto *classes = dyn_cast<ClassTemplateDecl>(decl)) {
    visitClassTemplate(classes);
  } else if (auto *record = dyn_cast<CXXRecordDecl>(decl)) {
    visitRecord(record);
  } else if (auto *variables = dyn_cast<VarTemplateDecl>(decl)) {
    for (VarDecl *instance : variables->specializations())
      visit(instance);
  } else if (auto *variable = dyn_cast<VarDecl>(decl)) {
    if (variable->hasGlobalStorage() && variable->hasInit() && !variable->isInvalidDecl() &&
        !variable->getDeclContext()->isDependentContext() && !variable->getType()->isDependentType() &&
        seen.insert(variable).second)
      result.variables.push_back(variable);
  }
}

void ProjectDeclCollector::visitFunction(FunctionDecl *function) {
  if (function->isDependentContext())
    return visitPattern(function);
  if (!seen.insert(function).second)
    return;
  result.functions.push_back(function);
  visitLocals(function);
}

void ProjectDeclCollector::visitPattern(FunctionDecl *function) {
  if (function->isThisDeclarationADefinition() && !function->isDefaulted() && !function->isDeleted() &&
      !isDeviceCode(function))
    result.patterns.push_back(function);
}

void ProjectDeclCollector::visitLocals(FunctionDecl *function) {
  // Classes declared in a body: their methods are functions of their own.
  if (function->isThisDeclarationADefinition())
    for (Decl *decl : function->decls())
      if (auto *record = dyn_cast<CXXRecordDecl>(decl); record && !record->isLambda())
        visitRecord(record);
}

void ProjectDeclCollector::visitRecord(CXXRecordDecl *record) {
  if (record->isDependentContext() || !record->isThisDeclarationADefinition() || !seen.insert(record).second)
    return;
  if (!record->isLambda() && !record->isInjectedClassName())
    result.records.push_back(record);
  visitContext(record);
}

void ProjectDeclCollector::visitClassTemplate(ClassTemplateDecl *pattern) {
  if (!seen.insert(pattern->getCanonicalDecl()).second)
    return;
  for (Decl *member : pattern->getTemplatedDecl()->decls())
    if (isa<FunctionDecl, FunctionTemplateDecl>(member))
      visit(member);
  for (ClassTemplateSpecializationDecl *instance : pattern->specializations()) {
    if (CXXRecordDecl *definition = instance->getDefinition())
      visitRecord(definition);
    else if (!instance->isDependentContext())
      result.incomplete.push_back(instance);
  }
}

} // namespace devicetidy::frontend
