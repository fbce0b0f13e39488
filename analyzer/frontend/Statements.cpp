//===- Statements.cpp - statements except loops, declarations, try --------===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

/// The calls whose results an expression statement discards: the call it consists of, or those in the arms
/// of a conditional and in the operands of a comma.
void collectDiscarded(const Expr *expr, std::vector<const Expr *> &calls) {
  expr = expr->IgnoreParens();
  if (const auto *full = dyn_cast<FullExpr>(expr))
    return collectDiscarded(full->getSubExpr(), calls);
  if (const auto *bound = dyn_cast<CXXBindTemporaryExpr>(expr))
    return collectDiscarded(bound->getSubExpr(), calls);
  if (const auto *choice = dyn_cast<ConditionalOperator>(expr)) {
    collectDiscarded(choice->getTrueExpr(), calls);
    return collectDiscarded(choice->getFalseExpr(), calls);
  }
  if (const auto *comma = dyn_cast<BinaryOperator>(expr); comma && comma->isCommaOp()) {
    collectDiscarded(comma->getLHS(), calls);
    return collectDiscarded(comma->getRHS(), calls);
  }
  if (isa<CallExpr>(expr))
    calls.push_back(expr);
}

} // namespace

void FunctionLowering::lowerExpressionStatement(const Expr *expr) {
  if (!isOpen())
    continueIn(newBlock());
  std::vector<const Expr *> before = std::move(discardedCalls);
  discardedCalls.clear();
  std::vector<std::int32_t> outer = takeTemporaries();
  collectDiscarded(expr, discardedCalls);
  lowerDiscarded(expr);
  discardedCalls = std::move(before);
  endFullExpression();
  temporaries = std::move(outer);
}

void FunctionLowering::lowerStatement(const Stmt *statement) {
  if (!statement)
    return;
  if (const auto *expr = dyn_cast<Expr>(statement))
    return lowerExpressionStatement(expr);
  switch (statement->getStmtClass()) {
  case Stmt::CompoundStmtClass:
    return lowerCompound(cast<CompoundStmt>(statement));
  case Stmt::DeclStmtClass:
    for (const Decl *decl : cast<DeclStmt>(statement)->decls())
      lowerDeclaration(decl);
    return;
  case Stmt::IfStmtClass:
    return lowerIf(cast<IfStmt>(statement));
  case Stmt::SwitchStmtClass:
    return lowerSwitch(cast<SwitchStmt>(statement));
  case Stmt::CaseStmtClass:
  case Stmt::DefaultStmtClass:
    return lowerCase(cast<SwitchCase>(statement));
  case Stmt::WhileStmtClass:
    return lowerWhile(cast<WhileStmt>(statement));
  case Stmt::DoStmtClass:
    return lowerDo(cast<DoStmt>(statement));
  case Stmt::ForStmtClass:
    return lowerFor(cast<ForStmt>(statement));
  case Stmt::CXXForRangeStmtClass:
    return lowerRangeFor(cast<CXXForRangeStmt>(statement));
  case Stmt::ReturnStmtClass:
    return lowerReturn(cast<ReturnStmt>(statement));
  case Stmt::BreakStmtClass:
    return lowerBreak(/*isContinue=*/false);
  case Stmt::ContinueStmtClass:
    return lowerBreak(/*isContinue=*/true);
  case Stmt::LabelStmtClass:
    return lowerLabel(cast<LabelStmt>(statement));
  case Stmt::GotoStmtClass:
    if (isOpen())
      jump(labelBlock(cast<GotoStmt>(statement)->getLabel()));
    return;
  case Stmt::CXXTryStmtClass:
    return lowerTry(cast<CXXTryStmt>(statement));
  case Stmt::AttributedStmtClass:
    return lowerStatement(cast<AttributedStmt>(statement)->getSubStmt());
  case Stmt::NullStmtClass:
    return;
  default:
    lowerOpaqueChildren(statement);
    opaque(statement, context.VoidTy);
    for (const Stmt *child : statement->children())
      if (child && !isa<Expr>(child))
        lowerStatement(child);
    endFullExpression();
  }
}

void FunctionLowering::lowerCompound(const CompoundStmt *statement) {
  enterScope();
  for (const Stmt *child : statement->body()) {
    meetLost(child->getBeginLoc());
    lowerStatement(child);
    meetLost(child->getEndLoc());
  }
  meetLost(statement->getRBracLoc());
  leaveScope();
}

void FunctionLowering::lowerIf(const IfStmt *statement) {
  enterScope();
  lowerStatement(statement->getInit());
  if (statement->isConstexpr() && !statement->getCond()->isValueDependent()) {
    if (std::optional<const Stmt *> kept = statement->getNondiscardedCase(context)) {
      lowerStatement(*kept);
      leaveScope();
      return;
    }
  }
  if (const VarDecl *variable = statement->getConditionVariable())
    lowerVariableDeclaration(variable);
  BlockId whenTrue = newBlock(), whenFalse = newBlock(), join = newBlock();
  if (statement->isConsteval())
    jump(statement->isNegatedConsteval() ? whenTrue : whenFalse);
  else
    lowerCondition(statement->getCond(), whenTrue, whenFalse);
  continueIn(whenTrue);
  endStatement();
  lowerStatement(statement->getThen());
  jump(join);
  continueIn(whenFalse);
  endStatement();
  lowerStatement(statement->getElse());
  jump(join);
  continueIn(join);
  leaveScope();
}

void FunctionLowering::lowerSwitch(const SwitchStmt *statement) {
  enterScope();
  lowerStatement(statement->getInit());
  if (const VarDecl *variable = statement->getConditionVariable())
    lowerVariableDeclaration(variable);
  if (!isOpen())
    continueIn(newBlock());
  std::vector<std::int32_t> outer = takeTemporaries();
  Terminator terminator;
  terminator.kind = TerminatorKind::Switch;
  terminator.value = operand(statement->getCond());
  terminator.where = terminator.value.where;
  endTemporaries(takeTemporaries());
  temporaries = std::move(outer);

  BlockId exit = newBlock();
  BlockId defaultBlock = exit;
  // The list of cases is kept in reverse.
  std::vector<const SwitchCase *> cases;
  for (const SwitchCase *item = statement->getSwitchCaseList(); item; item = item->getNextSwitchCase())
    cases.insert(cases.begin(), item);
  for (const SwitchCase *item : cases) {
    BlockId block = caseBlocks[item] = newBlock();
    const auto *labelled = dyn_cast<CaseStmt>(item);
    if (!labelled) {
      defaultBlock = block;
      continue;
    }
    if (labelled->getLHS()->isValueDependent() ||
        (labelled->getRHS() && labelled->getRHS()->isValueDependent()))
      continue; // could not be parsed
    std::int64_t low = toInt64(labelled->getLHS()->EvaluateKnownConstInt(context));
    std::int64_t high =
        labelled->getRHS() ? toInt64(labelled->getRHS()->EvaluateKnownConstInt(context)) : low;
    constexpr std::int64_t longestRange = 256;
    for (std::int64_t value = low; value <= high && value - low < longestRange; ++value) {
      terminator.cases.push_back(value);
      terminator.successors.push_back(block);
    }
  }
  terminator.successors.push_back(defaultBlock);
  terminate(std::move(terminator));

  BlockId continueTo = jumpTargets.empty() ? -1 : jumpTargets.back().continueTo;
  std::size_t continueDepth = jumpTargets.empty() ? 0 : jumpTargets.back().continueDepth;
  jumpTargets.push_back({exit, continueTo, scopes.size(), continueDepth});
  lowerStatement(statement->getBody());
  jumpTargets.pop_back();
  jump(exit);
  continueIn(exit);
  endStatement();
  leaveScope();
}

void FunctionLowering::lowerCase(const SwitchCase *statement) {
  // `case 1: case 2: case 3:` nests; a loop keeps long lists off the stack.
  const Stmt *body = statement;
  while (const auto *label = dyn_cast_or_null<SwitchCase>(body)) {
    auto block = caseBlocks.find(label);
    if (block == caseBlocks.end())
      break;
    if (isOpen())
      jump(block->second);
    continueIn(block->second);
    endStatement();
    body = label->getSubStmt();
  }
  lowerStatement(body);
}

void FunctionLowering::lowerReturn(const ReturnStmt *statement) {
  if (!isOpen())
    continueIn(newBlock());
  Terminator terminator;
  terminator.kind = TerminatorKind::Return;
  terminator.where = locate(statement->getSourceRange());
  std::vector<std::int32_t> outer = takeTemporaries();
  if (const Expr *value = statement->getRetValue()) {
    if (value->getType()->isVoidType())
      lowerDiscarded(value);
    else
      terminator.value = operand(value);
  }
  if (isOpen()) {
    endTemporaries(takeTemporaries());
    endScopesDownTo(0);
    terminate(std::move(terminator));
  }
  temporaries = std::move(outer);
}

void FunctionLowering::lowerBreak(bool isContinue) {
  if (!isOpen() || jumpTargets.empty())
    return;
  const JumpTarget &target = jumpTargets.back();
  endScopesDownTo(isContinue ? target.continueDepth : target.breakDepth);
  jump(isContinue ? target.continueTo : target.breakTo);
}

BlockId FunctionLowering::labelBlock(const LabelDecl *label) {
  auto [place, isNew] = labels.try_emplace(label, -1);
  if (isNew)
    place->second = newBlock();
  return labels[label];
}

void FunctionLowering::lowerLabel(const LabelStmt *statement) {
  BlockId block = labelBlock(statement->getDecl());
  if (isOpen())
    jump(block);
  continueIn(block);
  endStatement();
  lowerStatement(statement->getSubStmt());
}

} // namespace devicetidy::frontend
