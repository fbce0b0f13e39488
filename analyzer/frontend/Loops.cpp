//===- Loops.cpp - loops are rotated --------------------------------------===//
//
// Every loop becomes: test, body, test again. The first test decides whether the loop is entered at all
// (Terminator::entersLoop), the second one jumps back to the loop head, which is the first block of the body.
//
//===----------------------------------------------------------------------===//
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/RecursiveASTVisitor.h"

#include <algorithm>
#include <set>

namespace devicetidy::frontend {

using namespace clang;

void FunctionLowering::lowerLoopTest(const VarDecl *variable, const Expr *condition, BlockId head,
                                     BlockId exit, bool entersLoop) {
  if (!isOpen())
    return;
  if (variable)
    lowerVariableDeclaration(variable);
  if (condition)
    lowerCondition(condition, head, exit, entersLoop);
  else
    jump(head);
}

namespace {

/// The blocks of a loop from which control can come back to its head. What is assigned just before a `break`
/// or `return` is not among them: it does not vary between iterations.
std::set<BlockId> blocksThatRepeat(const Function &function, BlockId head, BlockId firstBlock) {
  std::map<BlockId, std::vector<BlockId>> predecessors;
  for (auto id = static_cast<BlockId>(firstBlock); id < static_cast<BlockId>(function.blocks.size()); ++id)
    for (BlockId to : function.blocks[id].terminator.successors)
      predecessors[to].push_back(id);
  for (BlockId to : function.blocks[head].terminator.successors)
    predecessors[to].push_back(head);
  std::set<BlockId> repeating{head};
  std::vector<BlockId> open{head};
  while (!open.empty()) {
    const BlockId id = open.back();
    open.pop_back();
    for (BlockId from : predecessors[id])
      if (repeating.insert(from).second)
        open.push_back(from);
  }
  return repeating;
}

/// Does control get from `head`, a loop's body, to what follows it: the next test, the exit, the caller?
bool comesBack(const Function &function, BlockId head, BlockId firstBlock, BlockId exit) {
  std::set<BlockId> seen{head};
  std::vector<BlockId> open{head};
  while (!open.empty()) {
    const BlockId id = open.back();
    open.pop_back();
    const Terminator &end = function.blocks[id].terminator;
    if (id == firstBlock || id == exit || end.kind == TerminatorKind::Return)
      return true;
    for (BlockId to : end.successors)
      if (seen.insert(to).second)
        open.push_back(to);
  }
  return false;
}

/// Does an operator of this name move an iterator?
bool movesObject(std::string_view callee) {
  for (std::string_view suffix :
       {"::operator++", "::operator--", "::operator+=", "::operator-=", "::operator=", "std::advance"})
    if (callee.size() >= suffix.size() && callee.substr(callee.size() - suffix.size()) == suffix)
      return true;
  return false;
}

} // namespace

// `while (is wrong) fail();` and `for (Status status = f(); failed(status);) throw Error();` are how some
// libraries write an assertion: not a loop, and not meant to run.
void FunctionLowering::finishAssertion(BlockId head, BlockId firstBlock, BlockId exit) {
  if (comesBack(function, head, firstBlock, exit))
    return;
  for (Block &block : function.blocks)
    if (llvm::is_contained(block.terminator.successors, head))
      block.terminator.entersLoop = false;
}

void FunctionLowering::finishLoop(BlockId head, BlockId firstBlock) {
  std::map<Reg, std::int32_t> cells;
  std::set<std::int32_t> stored, declared;
  auto visit = [&](const Block &block) {
    for (const Fact &fact : block.facts) {
      auto local = static_cast<std::int32_t>(fact.number);
      if (fact.kind == FactKind::Local)
        cells[fact.result] = local;
      else if (fact.kind == FactKind::Declare)
        declared.insert(local);
      else if (fact.kind == FactKind::Store)
        if (auto cell = cells.find(fact.operands[0].reg); cell != cells.end())
          stored.insert(cell->second);
      if (fact.kind == FactKind::Call && !fact.operands.empty() && movesObject(fact.name.view()))
        if (auto cell = cells.find(fact.operands[0].reg); cell != cells.end())
          stored.insert(cell->second);
    }
  };
  for (BlockId id : blocksThatRepeat(function, head, firstBlock))
    visit(function.blocks[id]);
  Block &block = function.blocks[head];
  block.isLoopHead = true;
  for (std::int32_t local : stored) {
    const Variable &variable = function.locals[local];
    TypeKind kind = unit.unit.types[variable.type].kind;
    bool mayCount = kind == TypeKind::Bool || kind == TypeKind::Int || kind == TypeKind::Float ||
                    kind == TypeKind::Enum || kind == TypeKind::Pointer || kind == TypeKind::Record;
    // What the loop declares itself is new in every iteration.
    if (mayCount && !variable.isReference && !declared.count(local))
      block.variesInLoop.push_back(local);
  }
}

void FunctionLowering::lowerWhile(const WhileStmt *statement) {
  enterScope();
  BlockId exit = newBlock();
  BlockId first = newBlock(); // the test at the end
  BlockId head = newBlock();
  lowerLoopTest(statement->getConditionVariable(), statement->getCond(), head, exit, /*entersLoop=*/true);
  jumpTargets.push_back({exit, first, scopes.size(), scopes.size()});
  continueIn(head);
  endStatement();
  lowerStatement(statement->getBody());
  jump(first);
  continueIn(first);
  lowerLoopTest(statement->getConditionVariable(), statement->getCond(), head, exit, /*entersLoop=*/false);
  jumpTargets.pop_back();
  finishLoop(head, first);
  finishAssertion(head, first, exit);
  continueIn(exit);
  endStatement();
  leaveScope();
}

void FunctionLowering::lowerDo(const DoStmt *statement) {
  if (!isOpen())
    continueIn(newBlock());
  BlockId exit = newBlock();
  BlockId first = newBlock(); // the test at the end
  BlockId head = newBlock();
  jump(head);
  jumpTargets.push_back({exit, first, scopes.size(), scopes.size()});
  continueIn(head);
  endStatement();
  lowerStatement(statement->getBody());
  jump(first);
  continueIn(first);
  lowerLoopTest(nullptr, statement->getCond(), head, exit, /*entersLoop=*/false);
  jumpTargets.pop_back();
  finishLoop(head, first);
  continueIn(exit);
  endStatement();
}

void FunctionLowering::lowerFor(const ForStmt *statement) {
  enterScope();
  lowerStatement(statement->getInit());
  BlockId exit = newBlock();
  BlockId first = newBlock(); // the increment
  BlockId head = newBlock();
  lowerLoopTest(statement->getConditionVariable(), statement->getCond(), head, exit, /*entersLoop=*/true);
  jumpTargets.push_back({exit, first, scopes.size(), scopes.size()});
  continueIn(head);
  endStatement();
  lowerStatement(statement->getBody());
  jump(first);
  continueIn(first);
  if (statement->getInc())
    lowerExpressionStatement(statement->getInc());
  lowerLoopTest(statement->getConditionVariable(), statement->getCond(), head, exit, /*entersLoop=*/false);
  jumpTargets.pop_back();
  finishLoop(head, first);
  finishAssertion(head, first, exit);
  continueIn(exit);
  endStatement();
  leaveScope();
}

void FunctionLowering::lowerRangeTest(const CXXForRangeStmt *statement, BlockId head, BlockId exit,
                                      bool entersLoop) {
  if (!isOpen())
    return;
  const VarDecl *range = cast<VarDecl>(statement->getRangeStmt()->getSingleDecl());
  Operand object = use(rangeAddress(range), true, statement->getRangeInit());
  Operand condition = object;
  Name type = unit.types.id(context.BoolTy);
  Fact &fact = append(FactKind::Call);
  fact.name = "__range_has_next";
  fact.type = type;
  fact.where = object.where;
  fact.operands.push_back(std::move(object));
  condition.reg = result(fact);
  condition.isAddress = false;
  condition.type = type;
  branch(std::move(condition), head, exit, entersLoop);
}

Reg FunctionLowering::rangeAddress(const VarDecl *range) {
  return loadReference(localAddress(locals[range]), range->getInit());
}

void FunctionLowering::lowerRangeElement(const CXXForRangeStmt *statement) {
  const VarDecl *range = cast<VarDecl>(statement->getRangeStmt()->getSingleDecl());
  const VarDecl *begin = cast<VarDecl>(statement->getBeginStmt()->getSingleDecl());
  const VarDecl *variable = statement->getLoopVariable();
  Operand object = use(rangeAddress(range), true, statement->getRangeInit());
  // `*__begin` is the innermost expression of the initialiser.
  struct Finder : RecursiveASTVisitor<Finder> {
    const VarDecl *begin = nullptr;
    QualType type;
    bool isBegin(const Expr *expr) {
      const auto *reference = dyn_cast<DeclRefExpr>(expr->IgnoreParenImpCasts());
      return reference && reference->getDecl() == begin;
    }
    bool VisitUnaryOperator(UnaryOperator *expr) {
      if (expr->getOpcode() == UO_Deref && isBegin(expr->getSubExpr()))
        type = expr->getType();
      return true;
    }
    bool VisitCXXOperatorCallExpr(CXXOperatorCallExpr *expr) {
      if (expr->getOperator() == OO_Star && isBegin(expr->getArg(0)))
        type = expr->getType();
      return true;
    }
  } finder;
  finder.begin = begin;
  if (const Expr *init = variable->getInit())
    finder.TraverseStmt(const_cast<Expr *>(init));
  Name type = unit.types.id(finder.type.isNull() ? variable->getType() : finder.type);
  Location where = locate(variable->getLocation());
  Fact &fact = append(FactKind::Call);
  fact.name = "__range_next";
  fact.type = type;
  fact.where = where;
  fact.resultIsAddress = true;
  fact.operands.push_back(std::move(object));
  rangeElements[begin] = result(fact);
  lowerVariableDeclaration(variable);
  rangeElements.erase(begin);
}

void FunctionLowering::lowerRangeFor(const CXXForRangeStmt *statement) {
  enterScope();
  lowerStatement(statement->getInit());
  const VarDecl *range = cast<VarDecl>(statement->getRangeStmt()->getSingleDecl());
  lowerVariableDeclaration(range);
  BlockId exit = newBlock();
  BlockId first = newBlock(); // the test at the end
  BlockId head = newBlock();
  lowerRangeTest(statement, head, exit, /*entersLoop=*/true);
  jumpTargets.push_back({exit, first, scopes.size(), scopes.size()});
  continueIn(head);
  endStatement();
  enterScope();
  lowerRangeElement(statement);
  lowerStatement(statement->getBody());
  leaveScope();
  jump(first);
  continueIn(first);
  lowerRangeTest(statement, head, exit, /*entersLoop=*/false);
  jumpTargets.pop_back();
  finishLoop(head, first);
  continueIn(exit);
  endStatement();
  leaveScope();
}

} // namespace devicetidy::frontend
