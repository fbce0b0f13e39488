//===- OtherExpressions.cpp - wrappers, constants, rare expressions -------===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

Reg FunctionLowering::lowerDefault(const Expr *inner, const Expr *use, bool isMemberInit) {
  std::optional<Location> before = calledFrom;
  // A default argument belongs to the call. A default member initialiser of project code is where its value
  // comes from.
  if (!calledFrom && !(isMemberInit && unit.source.inProject(inner->getExprLoc())))
    calledFrom = unit.source.range(use->getSourceRange());
  Reg reg = lowerSame(inner);
  calledFrom = before;
  return reg;
}

Reg FunctionLowering::lowerTrait(const Expr *expr) {
  Expr::EvalResult value;
  if (!expr->isValueDependent() && expr->EvaluateAsInt(value, context))
    return literal(expr->getType()->isBooleanType() ? LiteralKind::Bool : LiteralKind::Int,
                   toInt64(value.Val.getInt()), expr->getType());
  return opaque(expr, expr->getType());
}

Reg FunctionLowering::lowerStatementExpression(const StmtExpr *expr) {
  const CompoundStmt *body = expr->getSubStmt();
  const Stmt *last = body->body_empty() ? nullptr : body->body_back();
  const auto *value = dyn_cast_or_null<Expr>(last);
  bool hasValue = value && !expr->getType()->isVoidType();
  ++statementExpressionDepth;
  enterScope();
  for (const Stmt *statement : body->body())
    if (!hasValue || statement != last)
      lowerStatement(statement);
  Reg reg = hasValue ? lowerValue(value) : NoReg;
  leaveScope();
  --statementExpressionDepth;
  return reg;
}

void FunctionLowering::lowerOpaqueChildren(const Stmt *what) {
  for (const Stmt *child : what->children())
    if (const auto *expr = dyn_cast_or_null<Expr>(child); expr && !expr->getType()->isVoidType())
      lowerDiscarded(expr);
}

// `typeid(T)`: a place that holds the name of the type.
Reg FunctionLowering::lowerTypeid(const CXXTypeidExpr *expr) {
  if (!expr->isTypeOperand()) {
    lowerOpaqueChildren(expr);
    return opaque(expr, expr->getType());
  }
  const QualType type = expr->getTypeOperand(context).getUnqualifiedType();
  const Reg cell = localAddress(declareTemporary(expr->getType(), expr));
  store(cell, literal(LiteralKind::String, 0, type, unit.types.id(type)), false, expr);
  return cell;
}

Reg FunctionLowering::lowerOther(const Expr *expr) {
  switch (expr->getStmtClass()) {
  case Stmt::ParenExprClass:
    return lowerSame(cast<ParenExpr>(expr)->getSubExpr());
  case Stmt::ExprWithCleanupsClass:
  case Stmt::ConstantExprClass:
    return lowerSame(cast<FullExpr>(expr)->getSubExpr());
  case Stmt::CXXBindTemporaryExprClass:
    return lowerSame(cast<CXXBindTemporaryExpr>(expr)->getSubExpr());
  case Stmt::SubstNonTypeTemplateParmExprClass:
    return lowerSame(cast<SubstNonTypeTemplateParmExpr>(expr)->getReplacement());
  case Stmt::GenericSelectionExprClass:
    return lowerSame(cast<GenericSelectionExpr>(expr)->getResultExpr());
  case Stmt::ChooseExprClass:
    return lowerSame(cast<ChooseExpr>(expr)->getChosenSubExpr());
  case Stmt::CXXRewrittenBinaryOperatorClass:
    return lowerSame(cast<CXXRewrittenBinaryOperator>(expr)->getSemanticForm());
  case Stmt::CompoundLiteralExprClass:
    return lowerSame(cast<CompoundLiteralExpr>(expr)->getInitializer());
  case Stmt::InitListExprClass: // `T &r{x}`
    return lowerSame(cast<InitListExpr>(expr)->getInit(0));
  case Stmt::CXXDefaultArgExprClass:
    return lowerDefault(cast<CXXDefaultArgExpr>(expr)->getExpr(), expr, false);
  case Stmt::CXXDefaultInitExprClass:
    return lowerDefault(cast<CXXDefaultInitExpr>(expr)->getExpr(), expr, true);
  case Stmt::OpaqueValueExprClass: {
    const auto *value = cast<OpaqueValueExpr>(expr);
    auto known = opaqueValues.find(value);
    if (known != opaqueValues.end())
      return known->second;
    return value->getSourceExpr() ? lowerSame(value->getSourceExpr()) : opaque(expr, expr->getType());
  }
  case Stmt::ArrayInitLoopExprClass:
    return lowerValue(cast<ArrayInitLoopExpr>(expr)->getCommonExpr()->getSourceExpr());
  case Stmt::CXXTypeidExprClass:
    return lowerTypeid(cast<CXXTypeidExpr>(expr));
  case Stmt::StmtExprClass:
    return lowerStatementExpression(cast<StmtExpr>(expr));
  case Stmt::CXXThrowExprClass:
    lowerThrow(cast<CXXThrowExpr>(expr));
    return NoReg;
  case Stmt::CXXDeleteExprClass:
    lowerDiscarded(cast<CXXDeleteExpr>(expr)->getArgument());
    return NoReg;
  case Stmt::UnaryExprOrTypeTraitExprClass:
  case Stmt::TypeTraitExprClass:
  case Stmt::ArrayTypeTraitExprClass:
  case Stmt::ExpressionTraitExprClass:
  case Stmt::SizeOfPackExprClass:
  case Stmt::CXXNoexceptExprClass:
  case Stmt::OffsetOfExprClass:
  case Stmt::ConceptSpecializationExprClass:
  case Stmt::RequiresExprClass:
    return lowerTrait(expr);
  case Stmt::SourceLocExprClass:
    return literal(LiteralKind::Int, locate(expr->getSourceRange()).line, expr->getType());
  default:
    break;
  }
  lowerOpaqueChildren(expr);
  return opaque(expr, expr->getType());
}

} // namespace devicetidy::frontend
