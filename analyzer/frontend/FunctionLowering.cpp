//===- FunctionLowering.cpp - from the first fact of a body to the last ---===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

FunctionLowering::FunctionLowering(UnitBuilder &unit, Function &function, std::optional<LostCode> lost)
    : unit(unit), context(unit.context), function(function), lost(std::move(lost)) {}

void FunctionLowering::lowerFunction(const FunctionDecl *definition) {
  decl = definition;
  function.locals.clear();
  for (const ParmVarDecl *parameter : definition->parameters())
    addParameter(parameter);
  if (const CXXRecordDecl *lambda = lambdaOf(definition))
    prepareCaptures(lambda);
  continueIn(newBlock());
  if (const auto *constructor = dyn_cast<CXXConstructorDecl>(definition))
    lowerInitializers(constructor);
  if (lost && lost->lostInitializers)
    forgetSelf(definition->getBody()->getBeginLoc());
  meetLost(definition->getBody()->getBeginLoc());
  lowerStatement(definition->getBody());
  finish();
}

} // namespace devicetidy::frontend
