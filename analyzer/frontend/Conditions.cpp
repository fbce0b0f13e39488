//===- Conditions.cpp - && || ! ?: are control flow -----------------------===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

/// Strips what does not change whether a condition holds.
const Expr *conditionCore(const Expr *expr) {
  for (;;) {
    expr = expr->IgnoreParens();
    if (const auto *cast = dyn_cast<CastExpr>(expr)) {
      CastKind kind = cast->getCastKind();
      if (kind == CK_IntegralCast || kind == CK_IntegralToBoolean || kind == CK_NoOp) {
        expr = cast->getSubExpr();
        continue;
      }
    }
    if (const auto *full = dyn_cast<FullExpr>(expr)) {
      expr = full->getSubExpr();
      continue;
    }
    const auto *call = dyn_cast<CallExpr>(expr);
    if (call && call->getBuiltinCallee() == Builtin::BI__builtin_expect) {
      expr = call->getArg(0);
      continue;
    }
    return expr;
  }
}

} // namespace

void FunctionLowering::lowerBranch(const Expr *condition, BlockId whenTrue, BlockId whenFalse,
                                   bool entersLoop, bool negate) {
  const Expr *core = conditionCore(condition);
  if (const auto *unary = dyn_cast<UnaryOperator>(core); unary && unary->getOpcode() == UO_LNot) {
    lowerBranch(unary->getSubExpr(), whenTrue, whenFalse, entersLoop, !negate);
    return;
  }
  const auto *binary = dyn_cast<BinaryOperator>(core);
  if (binary && binary->isLogicalOp()) {
    bool isAnd = (binary->getOpcode() == BO_LAnd) != negate;
    BlockId second = newBlock();
    if (isAnd)
      lowerBranch(binary->getLHS(), second, whenFalse, entersLoop, negate);
    else
      lowerBranch(binary->getLHS(), whenTrue, second, entersLoop, negate);
    continueIn(second);
    lowerBranch(binary->getRHS(), whenTrue, whenFalse, entersLoop, negate);
    return;
  }
  bool known = false;
  if (!core->isValueDependent() && !core->containsErrors() &&
      core->EvaluateAsBooleanCondition(known, context)) {
    jump(known != negate ? whenTrue : whenFalse);
    return;
  }
  Operand value = operand(core);
  if (value.isAddress) {
    value = use(load(value.reg, core), false, core);
  }
  if (negate && entersLoop) {
    Location where = value.where;
    Operand negated = value;
    negated.reg = operatorFact("!", context.BoolTy, {std::move(value)}, where);
    branch(std::move(negated), whenTrue, whenFalse, entersLoop);
    return;
  }
  if (negate)
    std::swap(whenTrue, whenFalse);
  branch(std::move(value), whenTrue, whenFalse, entersLoop);
}

void FunctionLowering::lowerCondition(const Expr *condition, BlockId whenTrue, BlockId whenFalse,
                                      bool entersLoop) {
  if (!isOpen())
    continueIn(newBlock());
  std::vector<std::int32_t> outer = takeTemporaries();
  BlockId start = current;
  auto firstNew = static_cast<BlockId>(function.blocks.size());
  lowerBranch(condition, whenTrue, whenFalse, entersLoop, /*negate=*/false);
  std::vector<std::int32_t> ended = takeTemporaries();
  temporaries = std::move(outer);
  if (ended.empty())
    return;
  // The temporaries of the condition end on both ways out of it.
  auto lastNew = static_cast<BlockId>(function.blocks.size());
  BlockId landings[2];
  BlockId targets[2] = {whenTrue, whenFalse};
  for (int i = 0; i < 2; ++i) {
    landings[i] = newBlock();
    continueIn(landings[i]);
    endTemporaries(ended);
    endStatement();
    jump(targets[i]);
  }
  auto redirect = [&](BlockId block) {
    for (BlockId &successor : function.blocks[block].terminator.successors)
      successor = successor == whenTrue ? landings[0] : successor == whenFalse ? landings[1] : successor;
  };
  redirect(start);
  for (BlockId block = firstNew; block < lastNew; ++block)
    redirect(block);
}

Reg FunctionLowering::lowerLogical(const Expr *expr) {
  std::int32_t local = declareTemporary(expr->getType(), expr);
  BlockId whenTrue = newBlock(), whenFalse = newBlock(), join = newBlock();
  lowerBranch(expr, whenTrue, whenFalse, /*entersLoop=*/false, /*negate=*/false);
  for (bool value : {true, false}) {
    continueIn(value ? whenTrue : whenFalse);
    Reg cell = localAddress(local);
    store(cell, literal(LiteralKind::Bool, value, expr->getType()), false, expr);
    jump(join);
  }
  continueIn(join);
  return load(localAddress(local), expr);
}

Reg FunctionLowering::lowerConditionalValue(const AbstractConditionalOperator *expr) {
  if (expr->getType()->isVoidType()) {
    BlockId whenTrue = newBlock(), whenFalse = newBlock(), join = newBlock();
    lowerBranch(expr->getCond(), whenTrue, whenFalse, false, false);
    continueIn(whenTrue);
    lowerDiscarded(expr->getTrueExpr());
    jump(join);
    continueIn(whenFalse);
    lowerDiscarded(expr->getFalseExpr());
    jump(join);
    continueIn(join);
    return NoReg;
  }
  std::int32_t local = declareTemporary(expr->getType(), expr);
  lowerConditionalInto(expr, localAddress(local));
  return load(localAddress(local), expr);
}

void FunctionLowering::lowerConditionalInto(const AbstractConditionalOperator *expr, Reg address) {
  if (const auto *elvis = dyn_cast<BinaryConditionalOperator>(expr)) {
    const OpaqueValueExpr *common = elvis->getOpaqueValue();
    Reg reg = lowerSame(elvis->getCommon());
    opaqueValues[common] = reg;
  }
  BlockId whenTrue = newBlock(), whenFalse = newBlock(), join = newBlock();
  lowerBranch(expr->getCond(), whenTrue, whenFalse, false, false);
  continueIn(whenTrue);
  lowerInto(expr->getTrueExpr(), address);
  jump(join);
  continueIn(whenFalse);
  lowerInto(expr->getFalseExpr(), address);
  jump(join);
  continueIn(join);
}

Reg FunctionLowering::lowerConditionalAddress(const AbstractConditionalOperator *expr) {
  if (const auto *elvis = dyn_cast<BinaryConditionalOperator>(expr)) {
    Reg reg = lowerSame(elvis->getCommon());
    opaqueValues[elvis->getOpaqueValue()] = reg;
  }
  std::int32_t local = declareTemporary(context.getLValueReferenceType(expr->getType()), expr);
  BlockId whenTrue = newBlock(), whenFalse = newBlock(), join = newBlock();
  lowerBranch(expr->getCond(), whenTrue, whenFalse, false, false);
  for (const Expr *arm : {expr->getTrueExpr(), expr->getFalseExpr()}) {
    continueIn(arm == expr->getTrueExpr() ? whenTrue : whenFalse);
    if (arm->isGLValue()) {
      Reg address = lowerAddress(arm);
      store(localAddress(local), address, true, arm);
    } else {
      lowerDiscarded(arm); // a throw
    }
    jump(join);
  }
  continueIn(join);
  return loadReference(localAddress(local), expr);
}

} // namespace devicetidy::frontend
