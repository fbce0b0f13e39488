//===- Aggregates.cpp - braces: arrays, lists and plain records -----------===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

using namespace clang;

Reg FunctionLowering::aggregate(QualType type, std::vector<Operand> operands, std::vector<Name> names,
                                SourceRange where) {
  Name typeName = unit.types.id(type);
  Location location = locate(where);
  Fact &fact = append(FactKind::Aggregate);
  fact.type = typeName;
  fact.operands = std::move(operands);
  fact.captures = std::move(names);
  fact.where = location;
  return result(fact);
}

Reg FunctionLowering::lowerZero(QualType type, SourceRange where) {
  if (type->isBooleanType())
    return literal(LiteralKind::Bool, 0, type);
  if (type->isEnumeralType())
    return literal(LiteralKind::Enum, 0, type);
  if (type->isIntegralType(context))
    return literal(LiteralKind::Int, 0, type);
  if (type->isFloatingType())
    return literal(LiteralKind::Float, 0, type, "0");
  if (type->isRecordType() || type->isArrayType())
    return aggregate(type, {}, {}, where);
  if (type->isVoidType())
    return NoReg;
  return literal(LiteralKind::Null, 0, type);
}

Reg FunctionLowering::lowerRecordList(QualType type, const FieldDecl *unionField,
                                      llvm::ArrayRef<const Expr *> inits, SourceRange where) {
  const CXXRecordDecl *record = type->getAsCXXRecordDecl();
  std::vector<const FieldDecl *> fields;
  std::vector<Name> bases;
  if (unionField)
    fields.push_back(unionField);
  if (record && !record->isUnion()) {
    for (const CXXBaseSpecifier &base : record->bases())
      bases.push_back(unit.types.id(base.getType()));
    for (const FieldDecl *field : record->fields())
      if (!field->isUnnamedBitField())
        fields.push_back(field);
  }
  std::vector<Operand> operands;
  std::vector<Name> names;
  for (std::size_t i = 0; i < inits.size(); ++i) {
    const Expr *init = inits[i];
    bool before = inAggregateDefault;
    inAggregateDefault |= isa<CXXDefaultInitExpr>(init);
    operands.push_back(operand(init));
    inAggregateDefault = before;
    if (i < bases.size())
      names.push_back(bases[i]);
    else if (i - bases.size() < fields.size())
      names.push_back(Name(fields[i - bases.size()]->getNameAsString()));
    else
      names.push_back({});
  }
  return aggregate(type, std::move(operands), std::move(names), where);
}

Reg FunctionLowering::lowerInitList(const InitListExpr *list) {
  if (const InitListExpr *semantic = list->getSemanticForm())
    list = semantic;
  QualType type = list->getType();
  if (list->isTransparent() || !(type->isRecordType() || type->isArrayType())) {
    if (list->getNumInits() == 0)
      return lowerZero(type, list->getSourceRange());
    if (type->isAnyComplexType() || type->isVectorType()) {
      lowerOpaqueChildren(list);
      return opaque(list, type);
    }
    return lowerValue(list->getInit(0));
  }
  llvm::SmallVector<const Expr *, 8> inits;
  for (const Expr *init : list->inits())
    if (init)
      inits.push_back(init);
  if (type->isRecordType())
    return lowerRecordList(type, list->getInitializedFieldInUnion(), inits, list->getSourceRange());
  if (inits.size() == 1 && isa<StringLiteral>(inits[0]->IgnoreParens()))
    return lowerStringLiteral(inits[0]->IgnoreParens());
  std::vector<Operand> operands;
  for (const Expr *init : inits)
    operands.push_back(operand(init));
  return aggregate(type, std::move(operands), {}, list->getSourceRange());
}

Reg FunctionLowering::lowerParenInit(const CXXParenListInitExpr *list) {
  llvm::SmallVector<const Expr *, 8> inits;
  for (const Expr *init : list->getInitExprs())
    inits.push_back(init);
  if (list->getType()->isRecordType())
    return lowerRecordList(list->getType(), list->getInitializedFieldInUnion(), inits,
                           list->getSourceRange());
  std::vector<Operand> operands;
  for (const Expr *init : inits)
    operands.push_back(operand(init));
  return aggregate(list->getType(), std::move(operands), {}, list->getSourceRange());
}

Reg FunctionLowering::lowerInitializerList(const CXXStdInitializerListExpr *list) {
  const Expr *array = list->getSubExpr()->IgnoreParens();
  if (const auto *temporary = dyn_cast<MaterializeTemporaryExpr>(array))
    array = temporary->getSubExpr()->IgnoreParens();
  std::vector<Operand> operands;
  if (const auto *elements = dyn_cast<InitListExpr>(array)) {
    for (const Expr *element : elements->inits())
      operands.push_back(operand(element));
  } else {
    operands.push_back(operand(array));
  }
  return aggregate(list->getType(), std::move(operands), {}, list->getSourceRange());
}

} // namespace devicetidy::frontend
