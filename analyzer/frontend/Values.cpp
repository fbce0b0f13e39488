//===- Values.cpp - prvalues become values --------------------------------===//
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/DeclTemplate.h"
#include "llvm/ADT/SmallString.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

LiteralKind literalKind(QualType type) {
  if (type->isBooleanType())
    return LiteralKind::Bool;
  if (type->isEnumeralType())
    return LiteralKind::Enum;
  return LiteralKind::Int;
}

const Expr *ignoreWrappers(const Expr *expr) {
  for (;;) {
    if (const auto *full = dyn_cast<FullExpr>(expr))
      expr = full->getSubExpr();
    else if (const auto *bound = dyn_cast<CXXBindTemporaryExpr>(expr))
      expr = bound->getSubExpr();
    else if (const auto *paren = dyn_cast<ParenExpr>(expr))
      expr = paren->getSubExpr();
    else if (const auto *parameter = dyn_cast<SubstNonTypeTemplateParmExpr>(expr))
      expr = parameter->getReplacement();
    else
      return expr;
  }
}

} // namespace

std::optional<Reg> FunctionLowering::lowerConstant(const Expr *expr) {
  expr = ignoreWrappers(expr);
  const ValueDecl *decl = nullptr;
  if (const auto *reference = dyn_cast<DeclRefExpr>(expr))
    decl = reference->getDecl();
  else if (const auto *member = dyn_cast<MemberExpr>(expr))
    decl = member->getMemberDecl();
  if (!decl || !decl->getType()->isIntegralOrEnumerationType())
    return std::nullopt;
  if (const auto *enumerator = dyn_cast<EnumConstantDecl>(decl))
    return literal(LiteralKind::Enum, toInt64(enumerator->getInitVal()), expr->getType());
  const auto *variable = dyn_cast<VarDecl>(decl);
  if (!variable || isa<ParmVarDecl>(variable) || !variable->getType().isConstQualified() ||
      variable->getType().isVolatileQualified())
    return std::nullopt;
  const VarDecl *initialized = nullptr;
  const Expr *init = variable->getAnyInitializer(initialized);
  if (!init || init->isValueDependent() || init->containsErrors() ||
      !initialized->mightBeUsableInConstantExpressions(context) ||
      !initialized->isUsableInConstantExpressions(context))
    return std::nullopt;
  const APValue *value = initialized->evaluateValue();
  if (!value || !value->isInt())
    return std::nullopt;
  return literal(literalKind(expr->getType()), toInt64(value->getInt()), expr->getType());
}

Reg FunctionLowering::lowerStringLiteral(const Expr *expr) {
  const auto *text = dyn_cast<StringLiteral>(expr);
  if (const auto *predefined = dyn_cast<PredefinedExpr>(expr))
    text = predefined->getFunctionName();
  QualType type = context.getPointerType(context.CharTy.withConst());
  if (!text || text->getCharByteWidth() != 1)
    return literal(LiteralKind::String, 0, type, Name(text ? "(wide string)" : ""));
  Reg reg = literal(LiteralKind::String, 0, type, Name(text->getBytes().str()));
  Location where = locate(expr->getSourceRange());
  function.blocks[current].facts.back().where = where;
  return reg;
}

Reg FunctionLowering::functionValue(const FunctionDecl *called, const Expr *expr) {
  Name target;
  if (unit.isProject(called)) {
    target = unit.declare(called).id;
    unit.request(called);
  }
  Name name = unit.naming.qualified(called);
  Name type = unit.types.id(expr->getType());
  Location where = locate(expr->getSourceRange());
  Fact &fact = append(FactKind::Closure);
  fact.name = name;
  fact.target = target;
  fact.type = type;
  fact.where = where;
  return result(fact);
}

Reg FunctionLowering::lowerFunctionValue(const Expr *expr) {
  const Expr *inner = expr->IgnoreParens();
  if (const auto *reference = dyn_cast<DeclRefExpr>(inner))
    if (const auto *called = dyn_cast<FunctionDecl>(reference->getDecl()))
      return functionValue(called, reference);
  if (const auto *member = dyn_cast<MemberExpr>(inner))
    if (const auto *called = dyn_cast<FunctionDecl>(member->getMemberDecl()))
      return functionValue(called, member);
  return inner->isGLValue() ? lowerAddress(inner) : lowerValue(inner);
}

Reg FunctionLowering::lowerDynamicCast(const CastExpr *cast, Operand object) {
  const Name type = unit.types.id(cast->getType());
  const Name wanted = unit.types.id(cast->isGLValue() ? cast->getType() : cast->getType()->getPointeeType());
  Fact &fact = append(FactKind::Call);
  fact.name = "__dynamic_cast";
  fact.type = type;
  fact.templateTypes = {wanted};
  fact.operands = {std::move(object)};
  fact.resultIsAddress = cast->isGLValue();
  fact.where = locate(cast->getSourceRange());
  return result(fact);
}

namespace {

// Does the cast make a pointer to an object of a class of what says nothing of it: a number, a pointer to
// bytes, to anything or to a class that is only declared?
bool isOfHandle(const CastExpr *cast) {
  if (cast->getCastKind() != CK_BitCast && cast->getCastKind() != CK_IntegralToPointer)
    return false;
  const QualType object = cast->getType()->getPointeeType();
  const QualType handle = cast->getSubExpr()->getType()->getPointeeType();
  return !object.isNull() && object->isRecordType() && !object->isIncompleteType() &&
         (handle.isNull() || handle->isVoidType() || handle->isCharType() || handle->isIncompleteType());
}

} // namespace

Reg FunctionLowering::lowerHandle(const CastExpr *cast) {
  std::vector<Operand> operands{operand(cast->getSubExpr())};
  return operatorFact("cast", cast->getType(), std::move(operands), locate(cast->getSourceRange()));
}

Reg FunctionLowering::lowerCastValue(const CastExpr *cast) {
  const Expr *inner = cast->getSubExpr();
  switch (cast->getCastKind()) {
  case CK_LValueToRValue:
    if (std::optional<Reg> constant = lowerConstant(inner))
      return *constant;
    return load(lowerAddress(inner), inner);
  case CK_ArrayToPointerDecay: {
    const Expr *array = inner->IgnoreParens();
    if (isa<StringLiteral, PredefinedExpr>(array))
      return lowerStringLiteral(array);
    // An array of characters is a text, and one of numbers is written by whom it is given to.
    return context.getBaseElementType(inner->getType())->isRecordType() ? firstElement(inner)
                                                                        : lowerAddress(inner);
  }
  case CK_FunctionToPointerDecay:
  case CK_BuiltinFnToFnPtr:
    return lowerFunctionValue(inner);
  case CK_Dynamic:
    return lowerDynamicCast(cast, operand(inner));
  case CK_NullToPointer:
  case CK_NullToMemberPointer:
    return literal(LiteralKind::Null, 0, cast->getType());
  case CK_ToVoid:
    lowerDiscarded(inner);
    return NoReg;
  default:
    break;
  }
  if (isOfHandle(cast))
    return lowerHandle(cast);
  if (inner->getType()->isVoidType()) {
    lowerDiscarded(inner);
    return NoReg;
  }
  return lowerValue(inner);
}

Reg FunctionLowering::lowerValue(const Expr *expr) {
  if (isUnparsed(expr))
    return lowerUnparsed(expr);
  if (expr->isGLValue())
    return load(lowerAddress(expr), expr);
  switch (expr->getStmtClass()) {
  case Stmt::IntegerLiteralClass:
    return literal(LiteralKind::Int, toInt64(cast<IntegerLiteral>(expr)->getValue()), expr->getType());
  case Stmt::CharacterLiteralClass:
    return literal(LiteralKind::Int, cast<CharacterLiteral>(expr)->getValue(), expr->getType());
  case Stmt::CXXBoolLiteralExprClass:
    return literal(LiteralKind::Bool, cast<CXXBoolLiteralExpr>(expr)->getValue(), expr->getType());
  case Stmt::FloatingLiteralClass: {
    llvm::SmallString<32> text;
    cast<FloatingLiteral>(expr)->getValue().toString(text);
    return literal(LiteralKind::Float, 0, expr->getType(), Name(text.str().str()));
  }
  case Stmt::StringLiteralClass: // `char text[] = "..."`
    return lowerStringLiteral(expr);
  case Stmt::CXXNullPtrLiteralExprClass:
  case Stmt::GNUNullExprClass:
    return literal(LiteralKind::Null, 0, expr->getType());
  case Stmt::CXXThisExprClass:
    return lowerThis(expr);
  case Stmt::DeclRefExprClass:
    if (std::optional<Reg> constant = lowerConstant(expr))
      return *constant;
    return lowerVariableAddress(cast<DeclRefExpr>(expr)->getDecl(), expr);
  case Stmt::MemberExprClass:
    if (std::optional<Reg> constant = lowerConstant(expr))
      return *constant;
    return load(lowerMember(cast<MemberExpr>(expr)), expr);
  case Stmt::UnaryOperatorClass:
    return lowerUnary(cast<UnaryOperator>(expr));
  case Stmt::BinaryOperatorClass:
    return lowerBinary(cast<BinaryOperator>(expr));
  case Stmt::ConditionalOperatorClass:
  case Stmt::BinaryConditionalOperatorClass:
    return lowerConditionalValue(cast<AbstractConditionalOperator>(expr));
  case Stmt::LambdaExprClass:
    return lowerLambda(cast<LambdaExpr>(expr));
  case Stmt::CXXNewExprClass:
    return lowerNew(cast<CXXNewExpr>(expr));
  case Stmt::InitListExprClass:
    return lowerInitList(cast<InitListExpr>(expr));
  case Stmt::CXXParenListInitExprClass:
    return lowerParenInit(cast<CXXParenListInitExpr>(expr));
  case Stmt::CXXStdInitializerListExprClass:
    return lowerInitializerList(cast<CXXStdInitializerListExpr>(expr));
  case Stmt::ImplicitValueInitExprClass:
  case Stmt::CXXScalarValueInitExprClass:
    return lowerZero(expr->getType(), expr->getSourceRange());
  default:
    break;
  }
  if (const auto *construction = dyn_cast<CXXConstructExpr>(expr)) {
    if (isPlainCopy(construction))
      return lowerCopied(copySource(construction), construction->getConstructor()->isMoveConstructor());
    Reg address = materialize(expr);
    return load(address, expr);
  }
  if (const auto *call = dyn_cast<CallExpr>(expr))
    return lowerCall(call);
  if (const auto *cast = dyn_cast<CastExpr>(expr))
    return lowerCastValue(cast);
  return lowerOther(expr);
}

} // namespace devicetidy::frontend
