//===- UnitBuilder.cpp - declarations and the order of lowering -----------===//
#include "analyzer/frontend/UnitBuilder.h"

#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/DeclTemplate.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"

#include <set>

namespace devicetidy::frontend {

using namespace clang;

UnitBuilder::UnitBuilder(ASTContext &context, Unit &unit, const LowerOptions &options)
    : context(context), unit(unit), source(context, options.isProjectFile), naming(context, source),
      types(context, source, naming, unit.types) {}

bool UnitBuilder::isProject(const FunctionDecl *function) {
  if (const FunctionDecl *pattern = function->getTemplateInstantiationPattern())
    function = pattern;
  if (const auto *method = dyn_cast<CXXMethodDecl>(function); method && method->isImplicit())
    return Types::isProjectRecord(method->getParent(), source);
  if (source.inProject(function))
    return true;
  const FunctionDecl *definition = nullptr;
  return function->hasBody(definition) && definition != function && source.inProject(definition);
}

const CXXConstructorDecl *UnitBuilder::wrappedConstructor(const CXXConstructorDecl *constructor) {
  const CXXRecordDecl *record = constructor->getParent();
  if (!record->getDefinition() || !record->field_empty() || record->getNumBases() != 1)
    return constructor;
  const CXXRecordDecl *base = record->bases_begin()->getType()->getAsCXXRecordDecl();
  if (!base || !base->getDefinition() || Types::isProjectRecord(base, source))
    return constructor;
  if (InheritedConstructor inherited = constructor->getInheritedConstructor())
    return inherited.getConstructor();
  if (constructor->isDefaultConstructor() && (constructor->isImplicit() || constructor->isDefaulted()))
    for (const CXXConstructorDecl *candidate : base->ctors())
      if (candidate->isDefaultConstructor())
        return candidate;
  return constructor;
}

namespace {

void addOverrides(const CXXMethodDecl *method, Naming &naming, std::set<Name> &overrides) {
  for (const CXXMethodDecl *overridden : method->overridden_methods())
    if (overrides.insert(naming.id(overridden)).second)
      addOverrides(overridden, naming, overrides);
}

} // namespace

Function &UnitBuilder::declare(const FunctionDecl *decl) {
  Name id = naming.id(decl);
  auto [place, isNew] = unit.functions.try_emplace(id);
  Function &function = place->second;
  if (!isNew)
    return function;
  function.id = id;
  function.name = naming.qualified(decl);
  function.resultType = types.id(decl->getReturnType());
  function.resultIsReference = decl->getReturnType()->isReferenceType();
  function.isMain = decl->isMain();
  function.isVariadicTail = decl->isVariadic();
  function.isLambda = lambdaOf(decl) != nullptr;
  function.isStatic = decl->isStatic();
  function.isPrivate = !decl->hasExternalFormalLinkage() || isHidden(decl);
  function.paramCount = decl->getNumParams();
  function.requiredParams = decl->getMinRequiredArguments();
  const FunctionDecl *written = decl->getDefinition() ? decl->getDefinition() : decl;
  function.where = source.token(written->getLocation());
  if (const auto *method = dyn_cast<CXXMethodDecl>(decl)) {
    function.className = types.id(method->getParent());
    function.isConstructor = isa<CXXConstructorDecl>(method);
    function.isDestructor = isa<CXXDestructorDecl>(method);
    function.isConst = method->isConst();
    function.isVirtual = method->isVirtual();
    std::set<Name> overrides;
    addOverrides(method, naming, overrides);
    function.overrides.assign(overrides.begin(), overrides.end());
  }
  for (const ParmVarDecl *parameter : decl->parameters()) {
    Variable variable;
    variable.name = Name(parameter->getNameAsString());
    variable.type = types.id(parameter->getType());
    variable.isReference = parameter->getType()->isReferenceType();
    variable.isConst = parameter->getType().getNonReferenceType().isConstQualified();
    variable.where = source.token(parameter->getLocation());
    function.locals.push_back(variable);
  }
  return function;
}

Name bindingNames(const DecompositionDecl *decl) {
  std::string text;
  for (const BindingDecl *binding : decl->bindings())
    text += (text.empty() ? "[" : ", ") + binding->getNameAsString();
  return Name(text + "]");
}

Name UnitBuilder::global(const VarDecl *variable) {
  Name id = naming.id(variable);
  auto [place, isNew] = unit.globals.try_emplace(id);
  if (!isNew)
    return id;
  Global &entry = place->second;
  entry.id = id;
  entry.name = naming.qualified(variable);
  if (const auto *bindings = dyn_cast<DecompositionDecl>(variable))
    entry.name = bindingNames(bindings);
  entry.type = types.id(variable->getType());
  entry.isConst = variable->getType().getNonReferenceType().isConstQualified();
  entry.where = source.token(variable->getLocation());
  return id;
}

void UnitBuilder::request(const FunctionDecl *function) {
  if (requested.insert(function->getCanonicalDecl()).second)
    pending.push_back(function);
}

void UnitBuilder::requestGlobal(const VarDecl *variable) {
  if (requestedGlobals.insert(variable->getCanonicalDecl()).second)
    globals.push_back(variable);
}

namespace {

/// Looks for expressions that clang could not make sense of.
struct ErrorFinder : RecursiveASTVisitor<ErrorFinder> {
  bool found = false;
  bool shouldVisitImplicitCode() const { return true; }
  bool VisitExpr(Expr *expr) {
    // An initialiser that could not be instantiated stays a bare list without a type.
    found |= expr->containsErrors() || isa<ParenListExpr>(expr);
    return !found;
  }
  bool VisitVarDecl(VarDecl *variable) { return !(found |= variable->isInvalidDecl()); }
};

bool isCoroutine(const Stmt *body) { return isa_and_nonnull<CoroutineBodyStmt>(body); }

} // namespace

void UnitBuilder::setErrors(const std::vector<SourceLocation> &locations,
                            const std::vector<SourceRange> &skippedRanges) {
  const SourceManager &sources = context.getSourceManager();
  for (SourceLocation location : locations)
    errors.push_back(sources.getDecomposedExpansionLoc(location));
  if (errors.empty())
    return;
  for (SourceRange range : skippedRanges) {
    const auto [file, begin] = sources.getDecomposedLoc(range.getBegin());
    skipped.push_back({file, begin, sources.getFileOffset(range.getEnd())});
  }
}

bool UnitBuilder::hasErrorWithin(SourceLocation first, SourceLocation last) const {
  const SourceManager &sources = context.getSourceManager();
  auto [beginFile, begin] = sources.getDecomposedExpansionLoc(first);
  auto [endFile, end] = sources.getDecomposedLoc(sources.getExpansionRange(last).getEnd());
  for (auto [file, offset] : errors)
    if (file == beginFile && file == endFile && begin <= offset && offset <= end)
      return true;
  return false;
}

bool UnitBuilder::isBroken(const FunctionDecl *function) const {
  // What only we asked to be instantiated may be wrong although the unit is not.
  bool mayBeForced = function->isTemplateInstantiation() || function->isImplicit() || function->isDefaulted();
  if (errors.empty() && !mayBeForced)
    return false;
  if (function->isInvalidDecl() || hasErrorWithin(function->getBeginLoc(), function->getEndLoc()))
    return true;
  ErrorFinder finder;
  finder.TraverseStmt(function->getBody());
  if (const auto *constructor = dyn_cast<CXXConstructorDecl>(function))
    for (const CXXCtorInitializer *initializer : constructor->inits())
      finder.TraverseStmt(initializer->getInit());
  return finder.found;
}

std::optional<LostCode> UnitBuilder::lostIn(const FunctionDecl *function) const {
  const bool hasError = hasErrorWithin(function->getBeginLoc(), function->getEndLoc());
  // An instance whose pattern is intact has errors of its own, which nobody was told of.
  if (!hasError && (function->isTemplateInstantiation() || function->isImplicit() || function->isDefaulted()))
    return std::nullopt;
  LostCode lost = findLostCode(context, function, skipped);
  lost.lostInitializers = isa<CXXConstructorDecl>(function) &&
                          hasErrorWithin(function->getBeginLoc(), function->getBody()->getBeginLoc());
  if (lost.isOpen)
    return std::nullopt;
  return lost;
}

void UnitBuilder::lower(const FunctionDecl *function) {
  const FunctionDecl *definition = nullptr;
  if (!function->hasBody(definition) || !isProject(definition) || definition->isDependentContext() ||
      isDeviceCode(definition)) // what is left of it here are lambdas
    return;
  if (definition->isDefaulted() && !isa<CXXConstructorDecl>(definition))
    return; // copies and moves are stores
  if (const auto *constructor = dyn_cast<CXXConstructorDecl>(definition);
      constructor && ((constructor->isDefaulted() && constructor->isCopyOrMoveConstructor()) ||
                      wrappedConstructor(constructor) != constructor))
    return;
  Function &entry = declare(definition);
  if (entry.hasBody)
    return;
  const bool isSuspending = isCoroutine(definition->getBody());
  std::optional<LostCode> lost;
  if (isSuspending || (isBroken(definition) && !(lost = lostIn(definition)))) {
    if (isSuspending || !errors.empty())
      unit.skippedFunctions.push_back(entry.name);
    return;
  }
  FunctionLowering(*this, entry, std::move(lost)).lowerFunction(definition);
  if (const auto *constructor = dyn_cast<CXXConstructorDecl>(definition))
    lowerCompanions(constructor);
}

void UnitBuilder::lowerCompanions(const CXXConstructorDecl *constructor) {
  const auto missing = constructor->parameters().drop_front(constructor->getMinRequiredArguments());
  for (const ParmVarDecl *parameter : missing)
    if (parameter->hasUninstantiatedDefaultArg() || parameter->hasUnparsedDefaultArg() ||
        !parameter->getDefaultArg() || parameter->getDefaultArg()->containsErrors())
      return;
  for (unsigned given = constructor->getMinRequiredArguments(); given < constructor->getNumParams();
       ++given) {
    const Function original = declare(constructor);
    Function &entry = unit.functions[companion(constructor, given)];
    entry = original;
    entry.id = companion(constructor, given);
    entry.hasBody = false;
    entry.blocks.clear();
    entry.paramCount = entry.requiredParams = given;
    FunctionLowering(*this, entry).lowerDelegation(constructor, given);
  }
}

Name UnitBuilder::companion(const CXXConstructorDecl *constructor, unsigned given) {
  return Name(naming.id(constructor).str() + std::string(delegationMark) + std::to_string(given));
}

void UnitBuilder::lowerGlobals() {
  if (globals.empty())
    return;
  std::string id = "globals@" + source.path(context.getSourceManager().getMainFileID()).str();
  Function &entry = unit.functions[Name(id)];
  entry.id = Name(id);
  entry.name = "<globals>";
  entry.resultType = types.id(context.VoidTy);
  FunctionLowering(*this, entry).lowerGlobals(globals);
  entry.where = source.token(globals.front()->getLocation());
  unit.globalInit = entry.id;
}

void UnitBuilder::declareMembers(const CXXRecordDecl *record) {
  Type &entry = unit.types[types.id(record)];
  auto add = [&](const CXXMethodDecl *method) {
    if (method->isDeleted())
      return;
    const auto *constructor = dyn_cast<CXXConstructorDecl>(method);
    if (constructor ? constructor->isCopyOrMoveConstructor() : method->isImplicit())
      return;
    if (constructor && ((constructor->isImplicit() && !constructor->hasBody()) ||
                        wrappedConstructor(constructor) != constructor))
      return;
    (constructor ? entry.constructors : entry.methods).push_back(declare(method).id);
  };
  std::vector<Name> companions;
  auto addCompanions = [&](const CXXConstructorDecl *constructor) {
    for (unsigned given = constructor->getMinRequiredArguments(); given < constructor->getNumParams();
         ++given)
      companions.push_back(companion(constructor, given));
  };
  for (const Decl *member : record->decls()) {
    if (const auto *method = dyn_cast<CXXMethodDecl>(member))
      add(method);
    else if (const auto *pattern = dyn_cast<FunctionTemplateDecl>(member))
      for (const FunctionDecl *instance : pattern->specializations())
        if (const auto *method = dyn_cast<CXXMethodDecl>(instance))
          add(method);
  }
  for (const CXXConstructorDecl *constructor : record->ctors())
    if (!constructor->isCopyOrMoveConstructor())
      addCompanions(constructor);
  entry.constructors.insert(entry.constructors.end(), companions.begin(), companions.end());
}

void UnitBuilder::lowerRequested() {
  for (bool more = true; more;) {
    while (!pending.empty()) {
      std::vector<const FunctionDecl *> batch;
      batch.swap(pending);
      for (const FunctionDecl *function : batch)
        lower(function);
    }
    if (unit.globalInit.empty())
      lowerGlobals();
    for (const CXXRecordDecl *record : types.takeNewProjectRecords())
      declareMembers(record);
    more = !pending.empty();
  }
  for (auto records = types.takeNewProjectRecords(); !records.empty();
       records = types.takeNewProjectRecords())
    for (const CXXRecordDecl *record : records)
      declareMembers(record);
}

} // namespace devicetidy::frontend
