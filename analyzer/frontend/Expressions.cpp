//===- Expressions.cpp - glvalues become addresses ------------------------===//
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/DeclTemplate.h"

namespace devicetidy::frontend {

using namespace clang;

Reg FunctionLowering::lowerAddress(const Expr *expr) {
  if (!expr->isGLValue() || isUnparsed(expr))
    return materialize(expr);
  switch (expr->getStmtClass()) {
  case Stmt::DeclRefExprClass:
    return lowerVariable(cast<DeclRefExpr>(expr));
  case Stmt::MemberExprClass:
    return lowerMember(cast<MemberExpr>(expr));
  case Stmt::ArraySubscriptExprClass:
    return lowerSubscript(cast<ArraySubscriptExpr>(expr));
  case Stmt::UnaryOperatorClass:
    return lowerUnary(cast<UnaryOperator>(expr));
  case Stmt::BinaryOperatorClass:
    return lowerBinary(cast<BinaryOperator>(expr));
  case Stmt::CompoundAssignOperatorClass:
    return lowerCompoundAssignment(cast<CompoundAssignOperator>(expr));
  case Stmt::ConditionalOperatorClass:
  case Stmt::BinaryConditionalOperatorClass:
    return lowerConditionalAddress(cast<AbstractConditionalOperator>(expr));
  case Stmt::MaterializeTemporaryExprClass: {
    const auto *temporary = cast<MaterializeTemporaryExpr>(expr);
    return materialize(temporary->getSubExpr(), temporary);
  }
  case Stmt::StringLiteralClass:
  case Stmt::PredefinedExprClass:
    return materialize(expr);
  default:
    break;
  }
  if (const auto *call = dyn_cast<CallExpr>(expr))
    return lowerCall(call);
  if (const auto *cast = dyn_cast<CastExpr>(expr))
    return lowerCastAddress(cast);
  return lowerOther(expr);
}

Reg FunctionLowering::materialize(const Expr *expr, const MaterializeTemporaryExpr *materialization) {
  StorageDuration duration = materialization ? materialization->getStorageDuration() : SD_FullExpression;
  QualType type = expr->getType();
  if (materialization && duration != SD_FullExpression)
    type = materialization->getType();
  bool isStatic = duration == SD_Static || duration == SD_Thread;
  std::int32_t local = declareTemporary(type, expr, duration != SD_FullExpression);
  if (isStatic && !scopes.empty())
    scopes.back().pop_back();
  if (isa<StringLiteral, PredefinedExpr>(expr)) {
    Reg value = lowerStringLiteral(expr);
    Reg cell = localAddress(local);
    store(cell, value, false, expr);
    return cell;
  }
  Reg address = localAddress(local);
  lowerInto(expr, address);
  return address;
}

Reg FunctionLowering::lowerVariable(const DeclRefExpr *reference) {
  if (std::optional<Reg> constant = lowerConstant(reference)) {
    // A constant bound to a reference parameter still shows its value.
    std::int32_t local = declareTemporary(reference->getType(), reference);
    Reg cell = localAddress(local);
    store(cell, *constant, false, reference);
    return cell;
  }
  return lowerVariableAddress(reference->getDecl(), reference);
}

Reg FunctionLowering::lowerVariableAddress(const ValueDecl *variable, const Expr *expr) {
  if (captureFields.count(variable))
    return lowerCapture(variable, expr);
  if (const auto *binding = dyn_cast<BindingDecl>(variable)) {
    if (const VarDecl *holder = binding->getHoldingVar())
      return lowerVariableAddress(holder, expr);
    if (const Expr *bound = binding->getBinding())
      return lowerAddress(bound);
    return opaque(expr, expr->getType());
  }
  if (const auto *called = dyn_cast<FunctionDecl>(variable))
    return functionValue(called, expr);
  const auto *var = dyn_cast<VarDecl>(variable);
  if (!var)
    return opaque(expr, expr->getType());
  Reg cell;
  if (var->hasGlobalStorage()) {
    Name id = unit.global(var);
    Name type = unit.types.id(var->getType());
    Location where = locate(expr->getSourceRange());
    Fact &fact = append(FactKind::Global);
    fact.name = id;
    fact.type = type;
    fact.where = where;
    cell = result(fact);
  } else {
    auto known = locals.find(var);
    std::int32_t local = known != locals.end() ? known->second : declareVariable(var);
    cell = localAddress(local);
    function.blocks[current].facts.back().where = locate(expr->getSourceRange());
  }
  return var->getType()->isReferenceType() ? loadReference(cell, expr) : cell;
}

Reg FunctionLowering::lowerMember(const MemberExpr *member) {
  const ValueDecl *decl = member->getMemberDecl();
  const Expr *base = member->getBase();
  if (const auto *field = dyn_cast<FieldDecl>(decl)) {
    Operand source = objectOperand(base, member->isArrow());
    if (field->isAnonymousStructOrUnion())
      return source.reg; // its members are named as members of the object around it
    Name type = unit.types.id(member->getType());
    Location where = locate(member->getSourceRange());
    Fact &fact = append(FactKind::Field);
    fact.name = Name(field->getNameAsString());
    fact.type = type;
    fact.where = where;
    fact.operands.push_back(std::move(source));
    Reg address = result(fact);
    return field->getType()->isReferenceType() ? loadReference(address, member) : address;
  }
  if (base->HasSideEffects(context))
    lowerDiscarded(base);
  return lowerVariableAddress(decl, member);
}

Reg FunctionLowering::lowerSubscript(const ArraySubscriptExpr *subscript) {
  const Expr *base = subscript->getBase();
  const auto *decay = dyn_cast<CastExpr>(base->IgnoreParens());
  Operand array;
  if (decay && decay->getCastKind() == CK_ArrayToPointerDecay)
    array = use(lowerAddress(decay->getSubExpr()), true, decay->getSubExpr());
  else
    array = use(lowerValue(base), false, base);
  Operand index = operand(subscript->getIdx());
  Name type = unit.types.id(subscript->getType());
  Location where = locate(subscript->getSourceRange());
  Fact &fact = append(FactKind::Element);
  fact.type = type;
  fact.where = where;
  fact.operands.push_back(std::move(array));
  fact.operands.push_back(std::move(index));
  return result(fact);
}

Reg FunctionLowering::firstElement(const Expr *array) {
  Operand whole = use(lowerAddress(array), true, array);
  Operand number;
  number.reg = literal(LiteralKind::Int, 0, context.IntTy);
  number.type = unit.types.id(context.IntTy);
  Name type = unit.types.id(context.getAsArrayType(array->getType())->getElementType());
  Fact &fact = append(FactKind::Element);
  fact.type = type;
  fact.where = whole.where;
  fact.operands.push_back(std::move(whole));
  fact.operands.push_back(std::move(number));
  return result(fact);
}

Reg FunctionLowering::lowerPointerTarget(const Expr *pointer) {
  if (const auto *decay = dyn_cast<ImplicitCastExpr>(pointer->IgnoreParens());
      decay && decay->getCastKind() == CK_ArrayToPointerDecay &&
      !isa<StringLiteral, PredefinedExpr>(decay->getSubExpr()->IgnoreParens()))
    return firstElement(decay->getSubExpr());
  // A pointer value is the address of what it points to.
  return pointer->isGLValue() ? load(lowerAddress(pointer), pointer) : lowerValue(pointer);
}

Reg FunctionLowering::lowerCastAddress(const CastExpr *cast) {
  const Expr *inner = cast->getSubExpr();
  if (cast->getCastKind() == CK_LValueToRValue)
    return materialize(cast);
  if (cast->getCastKind() == CK_Dynamic)
    return lowerDynamicCast(cast, operand(inner));
  return inner->isGLValue() ? lowerAddress(inner) : materialize(inner);
}

Reg FunctionLowering::lowerThis(const Expr *expr) {
  if (inAggregateDefault)
    return opaque(expr, expr->getType());
  Reg closure = thisAddress();
  if (!thisCapture)
    return closure;
  Name type = unit.types.id(expr->getType()->getPointeeType());
  Operand object;
  object.reg = closure;
  object.isAddress = true;
  object.type = function.className;
  Fact &fact = append(FactKind::Field);
  fact.name = "this";
  fact.type = type;
  fact.operands.push_back(object);
  Reg address = result(fact);
  if (capturesThisByCopy)
    return address;
  Reg self = loadReference(address, expr);
  Fact &read = function.blocks[current].facts.back();
  read.type = read.operands[0].type = type;
  return self;
}

void FunctionLowering::lowerDiscarded(const Expr *expr) {
  expr = expr->IgnoreParens();
  if (const auto *cast = dyn_cast<CastExpr>(expr); cast && cast->getCastKind() == CK_ToVoid)
    expr = cast->getSubExpr()->IgnoreParens();
  if (const auto *conditional = dyn_cast<AbstractConditionalOperator>(expr);
      conditional && conditional->getType()->isVoidType()) {
    lowerConditionalValue(conditional);
    return;
  }
  if (expr->isGLValue() && !isUnparsed(expr))
    lowerAddress(expr);
  else
    lowerValue(expr);
}

} // namespace devicetidy::frontend
