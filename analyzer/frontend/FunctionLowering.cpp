//===- FunctionLowering.cpp - from the first fact of a body to the last ---===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

FunctionLowering::FunctionLowering(UnitBuilder &unit, Function &function)
    : unit(unit), context(unit.context), function(function) {}

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
  lowerStatement(definition->getBody());
  finish();
}

} // namespace devicetidy::frontend
