//===- Lambdas.cpp - closures and their captures --------------------------===//
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/DeclTemplate.h"

namespace devicetidy::frontend {

using namespace clang;

Reg FunctionLowering::lowerLambda(const LambdaExpr *lambda) {
  std::vector<Operand> operands;
  std::vector<Name> names;
  auto init = lambda->capture_init_begin();
  for (const LambdaCapture &capture : lambda->captures()) {
    const Expr *value = *init++;
    if (capture.capturesThis()) {
      names.push_back("this");
      operands.push_back(capture.getCaptureKind() == LCK_This ? objectOperand(value, /*isArrow=*/true)
                                                              : operand(value));
      operands.back().text = "this";
    } else if (capture.capturesVariable()) {
      names.push_back(captureName(lambda->getLambdaClass(), capture.getCapturedVar()));
      bool byReference = capture.getCaptureKind() == LCK_ByRef;
      operands.push_back(byReference ? use(lowerAddress(value), true, value)
                                     : use(lowerValue(value), false, value));
      if (capture.isImplicit())
        operands.back().text = Name(capture.getCapturedVar()->getNameAsString());
    }
  }
  const CXXMethodDecl *body = lambda->getCallOperator();
  Fact fact;
  fact.kind = FactKind::Closure;
  fact.type = unit.types.id(lambda->getType());
  fact.where = locate(lambda->getSourceRange());
  fact.operands = std::move(operands);
  fact.captures = std::move(names);
  if (FunctionTemplateDecl *generic = body->getDescribedFunctionTemplate()) {
    // Each instantiation is a function of its own; with exactly one, the closure is that one.
    for (const FunctionDecl *instance : generic->specializations()) {
      unit.request(instance);
      fact.target = fact.target.empty() ? unit.declare(instance).id : fact.target;
    }
  } else {
    fact.target = unit.declare(body).id;
    unit.request(body);
  }
  fact.name = unit.naming.qualified(body);
  fact.result = freshRegister();
  Reg reg = fact.result;
  append(FactKind::Closure) = std::move(fact);
  return reg;
}

void FunctionLowering::prepareCaptures(const CXXRecordDecl *lambda) {
  llvm::DenseMap<const ValueDecl *, FieldDecl *> fields;
  FieldDecl *self = nullptr;
  lambda->getCaptureFields(fields, self);
  for (auto [variable, field] : fields)
    captureFields[variable] = field;
  thisCapture = self;
  for (const LambdaCapture &capture : lambda->captures())
    if (capture.capturesThis())
      capturesThisByCopy = capture.getCaptureKind() == LCK_StarThis;
}

Reg FunctionLowering::lowerCapture(const ValueDecl *variable, const Expr *expr) {
  Operand closure;
  closure.reg = thisAddress();
  closure.isAddress = true;
  closure.type = function.className;
  const FieldDecl *field = captureFields[variable];
  Name type = unit.types.id(field->getType());
  Location where = locate(expr->getSourceRange());
  Fact &fact = append(FactKind::Field);
  fact.name = captureName(cast<CXXRecordDecl>(field->getParent()), variable);
  fact.type = type;
  fact.where = where;
  fact.operands.push_back(closure);
  Reg address = result(fact);
  return field->getType()->isReferenceType() ? loadReference(address, expr) : address;
}

} // namespace devicetidy::frontend
