//===- Exceptions.cpp - try, catch, throw ---------------------------------===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

void FunctionLowering::lowerThrow(const CXXThrowExpr *expr) {
  if (const Expr *thrown = expr->getSubExpr())
    lowerDiscarded(thrown);
  if (isOpen())
    throwTo();
}

void FunctionLowering::lowerTry(const CXXTryStmt *statement) {
  if (!isOpen())
    continueIn(newBlock());
  BlockId outerHandler = handler;
  std::size_t outerDepth = handlerScopeDepth;
  BlockId catches = newBlock();
  BlockId after = newBlock();
  handler = catches;
  handlerScopeDepth = scopes.size();
  BlockId body = newBlock();
  jump(body);
  continueIn(body);
  lowerCompound(statement->getTryBlock());
  handler = outerHandler;
  handlerScopeDepth = outerDepth;
  jump(after);

  continueIn(catches);
  bool catchesAll = false;
  for (unsigned i = 0; i < statement->getNumHandlers(); ++i) {
    const CXXCatchStmt *clause = statement->getHandler(i);
    catchesAll = !clause->getExceptionDecl();
    BlockId clauseBlock = newBlock();
    BlockId next = catchesAll ? -1 : newBlock();
    if (catchesAll)
      jump(clauseBlock);
    else
      branchEitherWay(clauseBlock, next);
    continueIn(clauseBlock);
    lowerCatch(clause);
    jump(after);
    if (catchesAll)
      break;
    continueIn(next);
  }
  if (!catchesAll)
    throwTo();
  continueIn(after);
}

void FunctionLowering::lowerCatch(const CXXCatchStmt *statement) {
  endStatement();
  enterScope();
  if (const VarDecl *variable = statement->getExceptionDecl()) {
    std::int32_t local = declareVariable(variable);
    Name type = unit.types.id(variable->getType());
    Location where = locate(variable->getSourceRange());
    Fact &thrown = append(FactKind::Opaque);
    thrown.type = type;
    thrown.where = where;
    Operand value;
    value.reg = result(thrown);
    value.type = type;
    value.where = where;
    value.isAddress = variable->getType()->isReferenceType();
    Operand cell = value;
    cell.reg = localAddress(local);
    cell.isAddress = true;
    Fact &fact = append(FactKind::Store);
    fact.type = type;
    fact.where = where;
    fact.operands = {cell, value};
    endStatement();
  }
  lowerStatement(statement->getHandlerBlock());
  leaveScope();
}

} // namespace devicetidy::frontend
