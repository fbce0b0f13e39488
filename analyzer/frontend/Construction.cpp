//===- Construction.cpp - objects come to life in place -------------------===//
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/DeclTemplate.h"

namespace devicetidy::frontend {

using namespace clang;

bool FunctionLowering::isPlainCopy(const CXXConstructExpr *expr) {
  const CXXConstructorDecl *constructor = expr->getConstructor();
  if (!constructor->isCopyOrMoveConstructor() || expr->getNumArgs() == 0)
    return false;
  return expr->isElidable() || constructor->isDefaulted() || constructor->isImplicit() ||
         !unit.isProject(constructor);
}

const Expr *FunctionLowering::copySource(const CXXConstructExpr *expr) const {
  // Copying from a temporary is making the object itself.
  const Expr *source = expr->getArg(0);
  for (;;) {
    const Expr *inner = source->IgnoreParens();
    if (const auto *temporary = dyn_cast<MaterializeTemporaryExpr>(inner))
      return temporary->getSubExpr();
    const auto *cast = dyn_cast<ImplicitCastExpr>(inner);
    if (!cast || cast->getCastKind() != CK_NoOp)
      return source;
    source = cast->getSubExpr();
  }
}

Reg FunctionLowering::lowerCopied(const Expr *source, bool isMove) {
  Reg value = lowerValue(source);
  if (isMove && source->isXValue() && !function.blocks[current].facts.empty())
    if (Fact &fact = function.blocks[current].facts.back(); fact.kind == FactKind::Load)
      fact.operands[0].isMoved = true;
  return value;
}

namespace {

/// Containers and strings take an allocator by default; it says nothing about devices and is left out.
bool isDefaultAllocator(const Expr *arg) {
  if (!isa<CXXDefaultArgExpr>(arg))
    return false;
  const CXXRecordDecl *record = arg->getType()->getAsCXXRecordDecl();
  return record && record->isInStdNamespace() && record->getIdentifier() && record->getName() == "allocator";
}

/// The function that a class template is instantiated for (TORCH_FN makes such an object); null for others.
const FunctionDecl *wrappedFunction(const CXXRecordDecl *record) {
  const auto *instance = dyn_cast<ClassTemplateSpecializationDecl>(record);
  if (!instance)
    return nullptr;
  for (const TemplateArgument &arg : instance->getTemplateArgs().asArray())
    if (arg.getKind() == TemplateArgument::Declaration)
      if (const auto *function = dyn_cast<FunctionDecl>(arg.getAsDecl()))
        return function;
  return nullptr;
}

} // namespace

void FunctionLowering::construct(const CXXConstructExpr *expr, Reg address) {
  const CXXConstructorDecl *constructor = expr->getConstructor();
  if (constructor->getParent()->isLambda() && expr->getNumArgs() == 1) {
    store(address, lowerValue(expr->getArg(0)), false, expr);
    return;
  }
  std::vector<Operand> operands(1);
  for (const Expr *arg : expr->arguments())
    if (!isDefaultAllocator(arg) &&
        !(isa<CXXDefaultArgExpr>(arg) && constructor->getParent()->isInStdNamespace()))
      operands.push_back(argument(arg, expr));
  if (const FunctionDecl *wrapped = wrappedFunction(constructor->getParent());
      wrapped && !unit.isProject(constructor))
    operands.push_back(use(functionValue(wrapped, expr), false, expr));
  operands[0] = use(address, true, expr);
  Fact fact;
  fact.kind = FactKind::Construct;
  fact.type = unit.types.id(expr->getType());
  fact.where = locate(expr->getSourceRange());
  fact.inMacro = unit.source.inMacroBody(expr->getBeginLoc());
  fact.inMacroArgument = unit.source.inMacroArgument(expr->getBeginLoc());
  fact.operands = std::move(operands);
  describeConstructor(fact, constructor);
  markWritable(fact.operands, constructor, 1);
  append(FactKind::Construct) = std::move(fact);
  // A message like those of CHECK: it is put together, and its destructor ends the program.
  if (constructor->getParent()->isAnyDestructorNoReturn())
    unreachable();
}

void FunctionLowering::describeConstructor(Fact &fact, const CXXConstructorDecl *constructor) {
  const CXXConstructorDecl *written = unit.wrappedConstructor(constructor);
  bool addsNothing = written != constructor;
  fact.name = unit.naming.qualified(written);
  describeTemplateArguments(fact, constructor);
  if (addsNothing || !unit.isProject(constructor) || constructor->isTrivial())
    return;
  fact.target = unit.declare(constructor).id;
  unit.request(constructor);
}

void FunctionLowering::constructInherited(const CXXInheritedCtorInitExpr *expr, Reg address) {
  Fact fact;
  fact.kind = FactKind::Construct;
  fact.type = unit.types.id(expr->getType());
  fact.where = locate(decl->getLocation());
  describeConstructor(fact, expr->getConstructor());
  Operand object;
  object.reg = address;
  object.isAddress = true;
  object.type = fact.type;
  fact.operands.push_back(object);
  // The parameters of the inheriting constructor are passed on.
  for (const ParmVarDecl *parameter : decl->parameters())
    fact.operands.push_back(passedOn(parameter, fact.where));
  append(FactKind::Construct) = std::move(fact);
}

Operand FunctionLowering::passedOn(const ParmVarDecl *parameter, Location where) {
  Operand passed;
  passed.type = unit.types.id(parameter->getType());
  passed.where = where;
  passed.text = Name(parameter->getNameAsString());
  Operand cell = passed;
  cell.reg = localAddress(locals[parameter]);
  cell.isAddress = true;
  Fact &read = append(FactKind::Load);
  read.type = passed.type;
  read.where = passed.where;
  read.operands.push_back(cell);
  read.resultIsAddress = passed.isAddress = parameter->getType()->isReferenceType();
  passed.reg = result(read);
  return passed;
}

void FunctionLowering::lowerDelegation(const CXXConstructorDecl *constructor, unsigned given) {
  decl = constructor;
  function.locals.clear();
  for (const ParmVarDecl *parameter : constructor->parameters().take_front(given))
    addParameter(parameter);
  continueIn(newBlock());
  Fact fact;
  fact.kind = FactKind::Construct;
  fact.type = function.className;
  fact.where = locate(constructor->getLocation());
  fact.name = function.name;
  fact.target = unit.declare(constructor).id;
  Operand object;
  object.reg = thisAddress();
  object.isAddress = true;
  object.type = fact.type;
  fact.operands.push_back(object);
  for (const ParmVarDecl *parameter : constructor->parameters().take_front(given))
    fact.operands.push_back(passedOn(parameter, fact.where));
  for (const ParmVarDecl *parameter : constructor->parameters().drop_front(given))
    fact.operands.push_back(operand(parameter->getDefaultArg()));
  append(FactKind::Construct) = std::move(fact);
  endFullExpression();
  finish();
}

void FunctionLowering::lowerInto(const Expr *expr, Reg address) {
  if (isUnparsed(expr))
    return store(address, lowerUnparsed(expr), false, nullptr);
  if (expr->getType()->isVoidType()) { // the throw of `c ? x : throw y`
    lowerDiscarded(expr);
    return;
  }
  const Expr *inner = expr->IgnoreParens();
  if (const auto *full = dyn_cast<FullExpr>(inner))
    return lowerInto(full->getSubExpr(), address);
  if (const auto *bound = dyn_cast<CXXBindTemporaryExpr>(inner))
    return lowerInto(bound->getSubExpr(), address);
  if (const auto *temporary = dyn_cast<MaterializeTemporaryExpr>(inner))
    return lowerInto(temporary->getSubExpr(), address);
  if (const auto *defaulted = dyn_cast<CXXDefaultInitExpr>(inner);
      defaulted && unit.source.inProject(defaulted->getExpr()->getExprLoc()))
    return lowerInto(defaulted->getExpr(), address);
  if (const auto *inherited = dyn_cast<CXXInheritedCtorInitExpr>(inner))
    return constructInherited(inherited, address);
  if (const auto *conditional = dyn_cast<AbstractConditionalOperator>(inner);
      conditional && !inner->isGLValue())
    return lowerConditionalInto(conditional, address);
  if (const auto *cast = dyn_cast<CastExpr>(inner)) {
    CastKind kind = cast->getCastKind();
    bool isSameObject =
        kind == CK_ConstructorConversion || kind == CK_UserDefinedConversion || kind == CK_NoOp;
    if (isSameObject && !cast->getSubExpr()->isGLValue())
      return lowerInto(cast->getSubExpr(), address);
  }
  if (const auto *construction = dyn_cast<CXXConstructExpr>(inner)) {
    if (!isPlainCopy(construction))
      return construct(construction, address);
    const Expr *source = copySource(construction);
    if (!source->isGLValue() && context.hasSameUnqualifiedType(source->getType(), construction->getType()))
      return lowerInto(source, address);
    store(address, lowerCopied(source, construction->getConstructor()->isMoveConstructor()), false, source);
    return;
  }
  Reg value = lowerValue(inner);
  if (isOpen())
    store(address, value, false, expr);
}

Reg FunctionLowering::lowerNew(const CXXNewExpr *expr) {
  for (const Expr *placement : expr->placement_arguments())
    lowerDiscarded(placement);
  if (expr->isArray())
    return lowerNewArray(expr);
  Name type = unit.types.id(expr->getAllocatedType());
  Location where = locate(expr->getSourceRange());
  Fact &fact = append(FactKind::New);
  fact.type = type;
  fact.where = where;
  Reg address = result(fact);
  if (const Expr *init = expr->getInitializer())
    lowerInto(init, address);
  return address;
}

Reg FunctionLowering::lowerNewArray(const CXXNewExpr *expr) {
  std::vector<Operand> operands;
  if (std::optional<const Expr *> size = expr->getArraySize(); size && *size)
    operands.push_back(operand(*size));
  QualType array = context.getIncompleteArrayType(expr->getAllocatedType(), ArraySizeModifier::Normal, 0);
  Name type = unit.types.id(array);
  Location where = locate(expr->getSourceRange());
  Fact &fact = append(FactKind::New);
  fact.type = type;
  fact.where = where;
  fact.operands = std::move(operands);
  return result(fact);
}

Reg FunctionLowering::fieldAddress(Reg object, const FieldDecl *field, SourceRange where) {
  Operand operand;
  operand.reg = object;
  operand.isAddress = true;
  operand.type = function.className;
  operand.where = locate(where);
  operand.text = "this";
  Name type = unit.types.id(field->getType());
  Fact &fact = append(FactKind::Field);
  fact.name = Name(field->getNameAsString());
  fact.type = type;
  fact.where = operand.where;
  fact.operands.push_back(operand);
  return result(fact);
}

void FunctionLowering::lowerInitializer(const CXXCtorInitializer *initializer) {
  const Expr *init = initializer->getInit();
  if (!init)
    return;
  if (const FieldDecl *field = initializer->getAnyMember()) {
    SourceRange where = initializer->isWritten() ? SourceRange(initializer->getSourceRange())
                                                 : SourceRange(field->getLocation());
    Reg address = fieldAddress(thisAddress(), field, where);
    if (field->getType()->isReferenceType())
      store(address, lowerAddress(init), true, init);
    else
      lowerInto(init, address);
  } else {
    // A base or, for a delegating constructor, the class itself.
    lowerInto(init, thisAddress());
  }
  endFullExpression();
}

void FunctionLowering::lowerInitializers(const CXXConstructorDecl *constructor) {
  if (constructor->getParent()->isInvalidDecl() && !constructor->isDelegatingConstructor())
    return lowerLostInitializers(constructor);
  for (const CXXCtorInitializer *initializer : constructor->inits())
    lowerInitializer(initializer);
}

} // namespace devicetidy::frontend
