//===- Scopes.cpp - locals, temporaries and their lifetimes ---------------===//
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/Basic/SourceManager.h"

namespace devicetidy::frontend {

using namespace clang;

Location FunctionLowering::locate(SourceRange range) {
  return calledFrom ? *calledFrom : unit.source.range(range);
}

Location FunctionLowering::locateCall(SourceLocation caret, const Expr *call) {
  if (calledFrom)
    return *calledFrom;
  if (caret.isInvalid())
    return unit.source.range(call->getSourceRange());
  return unit.source.range(caret, call->getEndLoc());
}

/// Its place ends with its name: a default argument is an expression of its own.
void FunctionLowering::addParameter(const ParmVarDecl *parameter) {
  SourceRange where = parameter->getSourceRange();
  if (parameter->getDeclName())
    where.setEnd(parameter->getLocation());
  locals[parameter] = addLocal(Name(parameter->getNameAsString()), parameter->getType(), where);
}

std::int32_t FunctionLowering::addLocal(Name name, QualType type, SourceRange where) {
  Variable variable;
  variable.name = name;
  variable.type = unit.types.id(type);
  variable.isReference = type->isReferenceType();
  variable.isConst = type.getNonReferenceType().isConstQualified();
  variable.where = locate(where);
  function.locals.push_back(variable);
  return static_cast<std::int32_t>(function.locals.size()) - 1;
}

Name FunctionLowering::variableName(const VarDecl *variable) {
  if (const auto *bindings = dyn_cast<DecompositionDecl>(variable))
    return bindingNames(bindings);
  // The range of a range-based for is an implicit variable.
  const bool isRange = variable->isImplicit() && variable->getName().starts_with("__range");
  return isRange ? Name() : Name(variable->getNameAsString());
}

std::int32_t FunctionLowering::declareVariable(const VarDecl *variable) {
  std::int32_t local = addLocal(variableName(variable), variable->getType(), variable->getLocation());
  locals[variable] = local;
  Fact &fact = append(FactKind::Declare);
  fact.number = local;
  fact.type = function.locals[local].type;
  fact.where = function.locals[local].where;
  if (!scopes.empty())
    scopes.back().push_back(local);
  return local;
}

std::int32_t FunctionLowering::declareTemporary(QualType type, const Expr *expr, bool outlivesExpression) {
  std::int32_t local = addLocal({}, type, expr->getSourceRange());
  Fact &fact = append(FactKind::Declare);
  fact.number = local;
  fact.type = function.locals[local].type;
  fact.where = function.locals[local].where;
  if (!outlivesExpression)
    temporaries.push_back(local);
  else if (!scopes.empty())
    scopes.back().push_back(local);
  return local;
}

void FunctionLowering::endTemporaries(const std::vector<std::int32_t> &list) {
  for (auto local = list.rbegin(); local != list.rend(); ++local) {
    Fact &fact = append(FactKind::EndScope);
    fact.number = *local;
    fact.where = function.locals[*local].where;
  }
}

void FunctionLowering::endScopesDownTo(std::size_t depth) {
  if (!isOpen())
    return;
  for (std::size_t i = scopes.size(); i > depth; --i)
    endTemporaries(scopes[i - 1]);
}

void FunctionLowering::leaveScope() {
  endScopesDownTo(scopes.size() - 1);
  scopes.pop_back();
}

std::vector<std::int32_t> FunctionLowering::takeTemporaries() {
  std::vector<std::int32_t> result;
  result.swap(temporaries);
  return result;
}

void FunctionLowering::endStatement() {
  if (!isOpen() || statementExpressionDepth != 0)
    return;
  append(FactKind::EndStatement);
  nextRegister = 0;
}

void FunctionLowering::endFullExpression() {
  std::vector<std::int32_t> ended = takeTemporaries();
  if (!isOpen())
    return;
  endTemporaries(ended);
  endStatement();
}

void FunctionLowering::throwTo() {
  if (handler < 0) {
    unreachable();
    return;
  }
  endScopesDownTo(handlerScopeDepth);
  jump(handler);
}

// Facts of one step.

Reg FunctionLowering::localAddress(std::int32_t local) {
  Fact &fact = append(FactKind::Local);
  fact.number = local;
  fact.type = function.locals[local].type;
  fact.where = function.locals[local].where;
  return result(fact);
}

Operand FunctionLowering::use(Reg reg, bool isAddress, const Expr *expr) {
  Operand operand;
  operand.reg = reg;
  operand.isAddress = isAddress;
  if (!expr)
    return operand;
  // The class before an implicit conversion to a base says more.
  const Expr *written = expr;
  while (const auto *cast = dyn_cast<ImplicitCastExpr>(written)) {
    CastKind kind = cast->getCastKind();
    if (kind != CK_DerivedToBase && kind != CK_UncheckedDerivedToBase && kind != CK_NoOp)
      break;
    written = cast->getSubExpr();
  }
  operand.type = unit.types.id(written->getType());
  // The body of a macro often has parentheses around its arguments; the text inside is the user's.
  const auto *parens = dyn_cast<ParenExpr>(expr->IgnoreImplicit());
  for (; parens && unit.source.inMacroBody(parens->getLParen()); parens = dyn_cast<ParenExpr>(expr))
    expr = parens->getSubExpr();
  operand.where = locate(expr->getSourceRange());
  if (!calledFrom)
    operand.text = unit.source.text(expr->getSourceRange());
  return operand;
}

Operand FunctionLowering::operand(const Expr *expr) {
  if (expr->isGLValue())
    return use(lowerAddress(expr), true, expr);
  return use(lowerValue(expr), false, expr);
}

Reg FunctionLowering::load(Reg address, const Expr *expr) {
  Operand source = use(address, true, expr);
  Fact &fact = append(FactKind::Load);
  fact.type = source.type;
  fact.where = source.where;
  fact.operands.push_back(std::move(source));
  return result(fact);
}

Reg FunctionLowering::loadReference(Reg cell, const Expr *expr) {
  Reg address = load(cell, expr);
  function.blocks[current].facts.back().resultIsAddress = true;
  return address;
}

void FunctionLowering::store(Reg address, Reg value, bool valueIsAddress, const Expr *expr) {
  Operand source = use(value, valueIsAddress, expr);
  Operand target = source;
  target.reg = address;
  target.isAddress = true;
  Fact &fact = append(FactKind::Store);
  fact.type = source.type;
  fact.where = source.where;
  fact.operands.push_back(std::move(target));
  fact.operands.push_back(std::move(source));
}

Reg FunctionLowering::literal(LiteralKind kind, std::int64_t number, QualType type, Name text) {
  Name typeName = unit.types.id(type);
  Fact &fact = append(FactKind::Literal);
  fact.literal = kind;
  fact.number = number;
  fact.type = typeName;
  fact.name = text;
  return result(fact);
}

Reg FunctionLowering::thisAddress() {
  Fact &fact = append(FactKind::This);
  fact.type = function.className;
  return result(fact);
}

Reg FunctionLowering::operatorFact(const char *name, QualType type, std::vector<Operand> operands,
                                   Location where) {
  Name typeName = unit.types.id(type);
  Fact &fact = append(FactKind::Operator);
  fact.name = name;
  fact.type = typeName;
  fact.operands = std::move(operands);
  fact.where = where;
  return result(fact);
}

Reg FunctionLowering::opaque(const Stmt *what, QualType type) {
  ++unit.unit.opaqueExpressions[Name(what->getStmtClassName())];
  Name typeName = unit.types.id(type);
  Location where = locate(what->getSourceRange());
  Fact &fact = append(FactKind::Opaque);
  fact.type = typeName;
  fact.where = where;
  return result(fact);
}

} // namespace devicetidy::frontend
