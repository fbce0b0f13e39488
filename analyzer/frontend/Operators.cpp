//===- Operators.cpp - built-in operators ---------------------------------===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

const char *spelling(BinaryOperatorKind kind) {
  switch (kind) {
  case BO_Add:
  case BO_AddAssign:
    return "+";
  case BO_Sub:
  case BO_SubAssign:
    return "-";
  case BO_Mul:
  case BO_MulAssign:
    return "*";
  case BO_Div:
  case BO_DivAssign:
    return "/";
  case BO_Rem:
  case BO_RemAssign:
    return "%";
  case BO_Shl:
  case BO_ShlAssign:
    return "<<";
  case BO_Shr:
  case BO_ShrAssign:
    return ">>";
  case BO_And:
  case BO_AndAssign:
    return "&";
  case BO_Or:
  case BO_OrAssign:
    return "|";
  case BO_Xor:
  case BO_XorAssign:
    return "^";
  case BO_LT:
    return "<";
  case BO_GT:
    return ">";
  case BO_LE:
    return "<=";
  case BO_GE:
    return ">=";
  case BO_EQ:
    return "==";
  case BO_NE:
    return "!=";
  default:
    return nullptr;
  }
}

} // namespace

Reg FunctionLowering::lowerAddressOf(const Expr *target, const Expr *expr) {
  const Expr *inner = target->IgnoreParens();
  if (const auto *reference = dyn_cast<DeclRefExpr>(inner)) {
    if (isa<FunctionDecl>(reference->getDecl()))
      return lowerFunctionValue(inner);
    if (isa<FieldDecl, IndirectFieldDecl>(reference->getDecl())) {
      // A pointer to a data member is known by the member's name.
      Reg reg = literal(LiteralKind::String, 0, expr->getType(), unit.naming.qualified(reference->getDecl()));
      return reg;
    }
    return lowerVariableAddress(reference->getDecl(), reference);
  }
  return lowerAddress(target);
}

Reg FunctionLowering::lowerIncrement(const UnaryOperator *expr) {
  const Expr *target = expr->getSubExpr();
  Reg address = lowerAddress(target);
  Reg before = load(address, target);
  QualType type = target->getType();
  Reg one = literal(LiteralKind::Int, 1, context.IntTy);
  Operand step;
  step.reg = one;
  step.type = unit.types.id(context.IntTy);
  Reg after = operatorFact(expr->isIncrementOp() ? "+" : "-", type, {use(before, false, target), step},
                           locate(expr->getSourceRange()));
  store(address, after, false, target);
  return expr->isPrefix() ? address : before;
}

Reg FunctionLowering::lowerUnary(const UnaryOperator *expr) {
  const Expr *inner = expr->getSubExpr();
  switch (expr->getOpcode()) {
  case UO_AddrOf:
    return lowerAddressOf(inner, expr);
  case UO_Deref:
    if (const VarDecl *begin = rangeElement(inner))
      return rangeElements[begin];
    return lowerPointerTarget(inner);
  case UO_PreInc:
  case UO_PreDec:
  case UO_PostInc:
  case UO_PostDec:
    return lowerIncrement(expr);
  case UO_Plus:
  case UO_Extension:
    return lowerSame(inner);
  case UO_Minus:
    if (const auto *number = dyn_cast<IntegerLiteral>(inner->IgnoreParenImpCasts()))
      return literal(LiteralKind::Int, -toInt64(number->getValue()), expr->getType());
    return operatorFact("neg", expr->getType(), {operand(inner)}, locate(expr->getSourceRange()));
  case UO_Not:
    return operatorFact("~", expr->getType(), {operand(inner)}, locate(expr->getSourceRange()));
  case UO_LNot:
    return operatorFact("!", expr->getType(), {operand(inner)}, locate(expr->getSourceRange()));
  default:
    lowerDiscarded(inner);
    return opaque(expr, expr->getType());
  }
}

Reg FunctionLowering::lowerAssignment(const BinaryOperator *expr) {
  // The right operand is sequenced before the left one.
  Reg value = lowerValue(expr->getRHS());
  Reg address = lowerAddress(expr->getLHS());
  store(address, value, false, expr->getRHS());
  function.blocks[current].facts.back().where = locate(expr->getSourceRange());
  return address;
}

Reg FunctionLowering::lowerCompoundAssignment(const CompoundAssignOperator *expr) {
  Operand right = operand(expr->getRHS());
  Reg address = lowerAddress(expr->getLHS());
  Reg before = load(address, expr->getLHS());
  Location where = locate(expr->getSourceRange());
  Reg after = operatorFact(spelling(expr->getOpcode()), expr->getLHS()->getType(),
                           {use(before, false, expr->getLHS()), std::move(right)}, where);
  store(address, after, false, expr->getLHS());
  return address;
}

Reg FunctionLowering::lowerMemberPointer(const BinaryOperator *expr) {
  Operand object = objectOperand(expr->getLHS(), expr->getOpcode() == BO_PtrMemI);
  Operand member = operand(expr->getRHS());
  // Which member is only known at run time; the field is named by the expression.
  Name name = unit.source.text(expr->getRHS()->getSourceRange());
  Name type = unit.types.id(expr->getType());
  Location where = locate(expr->getSourceRange());
  Fact &fact = append(FactKind::Field);
  fact.name = Name("->*" + name.str());
  fact.type = type;
  fact.where = where;
  fact.operands.push_back(std::move(object));
  fact.operands.push_back(std::move(member));
  return result(fact);
}

Reg FunctionLowering::lowerBinary(const BinaryOperator *expr) {
  switch (expr->getOpcode()) {
  case BO_Assign:
    return lowerAssignment(expr);
  case BO_Comma:
    lowerDiscarded(expr->getLHS());
    return lowerSame(expr->getRHS());
  case BO_LAnd:
  case BO_LOr:
    return lowerLogical(expr);
  case BO_PtrMemD:
  case BO_PtrMemI:
    return lowerMemberPointer(expr);
  default:
    break;
  }
  const char *name = spelling(expr->getOpcode());
  // Long sums are chains on the left; a loop instead of a recursion keeps the evaluation order.
  std::vector<const BinaryOperator *> chain{expr};
  const Expr *left = expr->getLHS();
  if (name) {
    while (const auto *next = dyn_cast<BinaryOperator>(left->IgnoreParenImpCasts())) {
      if (next->isGLValue() || !spelling(next->getOpcode()) || next->isCompoundAssignmentOp())
        break;
      chain.push_back(next);
      left = next->getLHS();
    }
  }
  Operand value = operand(left);
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
    Operand right = operand((*link)->getRHS());
    const char *symbol = spelling((*link)->getOpcode());
    Reg reg = symbol ? operatorFact(symbol, (*link)->getType(), {std::move(value), std::move(right)},
                                    locate((*link)->getSourceRange()))
                     : opaque(*link, (*link)->getType());
    value = use(reg, false, *link);
  }
  return value.reg;
}

} // namespace devicetidy::frontend
