//===- Declarations.cpp - variables and their initialisers ----------------===//
#include "analyzer/frontend/Compat.h"
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

void FunctionLowering::lowerDeclaration(const Decl *decl) {
  if (const auto *variable = dyn_cast<VarDecl>(decl); variable && !variable->isInvalidDecl())
    lowerVariableDeclaration(variable);
}

void FunctionLowering::lowerVariableDeclaration(const VarDecl *variable) {
  if (!isOpen())
    continueIn(newBlock());
  std::vector<std::int32_t> outer = takeTemporaries();
  if (variable->hasGlobalStorage()) {
    if (variable->isStaticLocal())
      lowerStaticLocal(variable);
  } else {
    std::int32_t local = declareVariable(variable);
    if (const Expr *init = variable->getInit())
      initialize(variable, local, init);
    else if (lost && variable->getType()->isRecordType() && !variable->isCXXForRangeDecl() &&
             !variable->isExceptionVariable())
      store(localAddress(local), unparsed({}, variable->getType(), variable->getLocation()), false, nullptr);
  }
  endFullExpression();
  temporaries = std::move(outer);
  if (const auto *bindings = dyn_cast<DecompositionDecl>(variable))
    lowerBindings(bindings);
}

void FunctionLowering::initialize(const VarDecl *variable, std::int32_t local, const Expr *init) {
  if (!variable->getType()->isReferenceType()) {
    lowerInto(init, localAddress(local));
    return;
  }
  Reg address = lowerAddress(init);
  if (isOpen())
    store(localAddress(local), address, true, init);
}

// Initialised when control comes here for the first time: a flag next to the variable says whether it was.
void FunctionLowering::lowerStaticLocal(const VarDecl *variable) {
  const Expr *init = variable->getInit();
  if (!init || init->containsErrors())
    return;
  auto flag = [&] {
    Fact &fact = append(FactKind::Global);
    fact.name = Name(unit.global(variable).str() + std::string(initialisedSuffix));
    fact.type = unit.types.id(context.BoolTy);
    fact.where = locate(variable->getLocation());
    return result(fact);
  };
  BlockId first = newBlock(), after = newBlock();
  branch(use(load(flag(), init), false, init), after, first, /*entersLoop=*/false);
  continueIn(first);
  initializeGlobal(variable);
  endFullExpression();
  store(flag(), literal(LiteralKind::Bool, 1, context.BoolTy), false, init);
  jump(after);
  continueIn(after);
}

void FunctionLowering::initializeGlobal(const VarDecl *variable) {
  const Expr *init = variable->getInit();
  if (!init || init->containsErrors() || init->isValueDependent())
    return;
  Name id = unit.global(variable);
  Name type = unit.types.id(variable->getType());
  Location where = locate(variable->getLocation());
  auto address = [&] {
    Fact &fact = append(FactKind::Global);
    fact.name = id;
    fact.type = type;
    fact.where = where;
    return result(fact);
  };
  if (!variable->getType()->isReferenceType()) {
    lowerInto(init, address());
    return;
  }
  Reg target = lowerAddress(init);
  store(address(), target, true, init);
}

void FunctionLowering::lowerGlobals(const std::vector<const VarDecl *> &variables) {
  continueIn(newBlock());
  for (const VarDecl *variable : variables) {
    initializeGlobal(variable);
    endFullExpression();
    if (const auto *bindings = dyn_cast<DecompositionDecl>(variable))
      lowerBindings(bindings);
  }
  finish();
}

void FunctionLowering::lowerBindings(const DecompositionDecl *decl) {
  // Bindings of a tuple-like class are references of their own, made by get<i>().
  for (const BindingDecl *binding : compat::bindings(decl)) {
    const VarDecl *holder = binding->getHoldingVar();
    if (!holder || !holder->getInit())
      continue;
    if (holder->hasGlobalStorage()) {
      initializeGlobal(holder);
      endFullExpression();
      continue;
    }
    std::int32_t local = declareVariable(holder);
    function.locals[local].name = Name(binding->getNameAsString());
    function.locals[local].where = locate(binding->getLocation());
    initialize(holder, local, holder->getInit());
    endFullExpression();
  }
}

} // namespace devicetidy::frontend
