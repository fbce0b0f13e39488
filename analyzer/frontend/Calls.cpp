//===- Calls.cpp - calls of functions, methods, operators, closures -------===//
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/DeclTemplate.h"
#include "clang/Basic/Builtins.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

bool isStdFunction(const FunctionDecl *callee) {
  const auto *method = dyn_cast_or_null<CXXMethodDecl>(callee);
  return method && method->getOverloadedOperator() == OO_Call && method->getParent()->isInStdNamespace() &&
         method->getParent()->getName() == "function";
}

/// std::move and friends: the argument is the result.
bool isIdentity(const FunctionDecl *callee) {
  if (!callee->isInStdNamespace() || callee->getNumParams() != 1 || !callee->getIdentifier())
    return false;
  llvm::StringRef name = callee->getName();
  return name == "move" || name == "forward" || name == "as_const" || name == "move_if_noexcept" ||
         name == "addressof";
}

bool isBelowStd(const Decl *decl) {
  for (const DeclContext *context = decl->getDeclContext(); context; context = context->getParent())
    if (context->isStdNamespace())
      return true;
  return false;
}

/// The object of a call when it is a function object that the library offers as a function
/// (std::ranges::copy); null otherwise.
const VarDecl *calledObject(const CXXOperatorCallExpr *call) {
  if (call->getOperator() != OO_Call || call->getNumArgs() == 0)
    return nullptr;
  const auto *reference = dyn_cast<DeclRefExpr>(call->getArg(0)->IgnoreParenImpCasts());
  const auto *variable = reference ? dyn_cast<VarDecl>(reference->getDecl()) : nullptr;
  return variable && variable->hasGlobalStorage() && isBelowStd(variable) ? variable : nullptr;
}

/// Whether `x` of `x.f()`, or `*p` of `p->f()`, could be assigned to as written.
void describeObject(Fact &fact, const CallExpr *call) {
  const auto *callee = dyn_cast<MemberExpr>(call->getCallee()->IgnoreParens());
  if (!callee || !isa<CXXMemberCallExpr>(call))
    return;
  const Expr *object = callee->getBase()->IgnoreParenImpCasts(); // a const method makes its object const
  const QualType type = callee->isArrow() ? object->getType()->getPointeeType() : object->getType();
  fact.isObjectPointee = callee->isArrow();
  fact.isObjectAssignable =
      !type.isNull() && !type.isConstQualified() && (callee->isArrow() || object->isLValue());
}

/// `T &&` of a function template, which takes any argument and says nothing about what it does with it.
bool isForwardingReference(const FunctionDecl *callee, unsigned i) {
  const FunctionTemplateDecl *pattern = callee->getPrimaryTemplate();
  const FunctionDecl *written = pattern ? pattern->getTemplatedDecl() : nullptr;
  if (!written || written->getNumParams() == 0)
    return false;
  const unsigned at = std::min(i, written->getNumParams() - 1); // the last may be a pack
  QualType type = written->getParamDecl(at)->getType();
  if (const auto *pack = type->getAs<PackExpansionType>())
    type = pack->getPattern();
  const auto *reference = type->getAs<RValueReferenceType>();
  return reference && reference->getPointeeType()->isTemplateTypeParmType();
}

/// May a function write to what it is given as a parameter of this type?
bool isWritten(QualType type) {
  if (const auto *reference = type->getAs<ReferenceType>())
    return !reference->getPointeeType().isConstQualified();
  const QualType pointee = type->getPointeeType();
  return !pointee.isNull() && !pointee.isConstQualified() && !pointee->isFunctionType();
}

} // namespace

/// Marks what `callee` may write to, or move from, among `operands`, whose first argument is at `first`.
void FunctionLowering::markWritable(std::vector<Operand> &operands, const FunctionDecl *callee,
                                    std::size_t first) {
  for (unsigned i = 0; i < callee->getNumParams() && first + i < operands.size(); ++i) {
    const QualType type = callee->getParamDecl(i)->getType();
    operands[first + i].isWritable = isWritten(type) && !isForwardingReference(callee, i);
    operands[first + i].isMoved &= type->isRValueReferenceType();
  }
}

Operand FunctionLowering::argument(const Expr *expr, const Expr *call) {
  const auto *defaulted = dyn_cast<CXXDefaultArgExpr>(expr);
  if (!defaulted) {
    Operand given = operand(expr);
    const Expr *written = expr;
    while (const auto *cast = dyn_cast<ImplicitCastExpr>(written))
      written = cast->getSubExpr();
    given.isMoved = expr->isXValue() && !isa<MaterializeTemporaryExpr>(written);
    return given;
  }
  std::optional<Location> before = calledFrom;
  if (!calledFrom)
    calledFrom = unit.source.range(call->getSourceRange());
  Operand result = operand(defaulted->getExpr());
  calledFrom = before;
  return result;
}

Operand FunctionLowering::objectOperand(const Expr *object, bool isArrow) {
  if (!isArrow)
    return use(lowerAddress(object), true, object); // a prvalue object gets a temporary
  Reg address = lowerPointerTarget(object);
  const Expr *written = object->IgnoreParens();
  const auto *arrow = dyn_cast<CXXOperatorCallExpr>(object->IgnoreParenImpCasts());
  bool isSmartPointer = arrow && arrow->getOperator() == OO_Arrow;
  // Users know the object of `p->f()` as `p`.
  Operand result = use(address, true, isSmartPointer ? arrow->getArg(0) : object);
  while (const auto *cast = dyn_cast<ImplicitCastExpr>(written))
    if (cast->getSubExpr()->getType()->isPointerType())
      written = cast->getSubExpr()->IgnoreParens();
    else
      break;
  if (QualType pointee = written->getType()->getPointeeType(); !pointee.isNull())
    result.type = unit.types.id(pointee);
  if (const auto *self = dyn_cast<CXXThisExpr>(written); self && self->isImplicit())
    result.text = "this";
  return result;
}

void FunctionLowering::describeTemplateArguments(Fact &fact, const FunctionDecl *callee) {
  if (const TemplateArgumentList *arguments = callee->getTemplateSpecializationArgs()) {
    fact.templateTypes = unit.types.typeArguments(arguments->asArray());
    fact.templateNumbers = Types::numberArguments(arguments->asArray());
  }
}

void FunctionLowering::describeCallee(Fact &fact, const FunctionDecl *callee) {
  fact.name = unit.naming.qualified(callee);
  describeTemplateArguments(fact, callee);
  const auto *method = dyn_cast<CXXMethodDecl>(callee);
  if (unit.isProject(callee)) {
    fact.target = unit.declare(callee).id;
    unit.request(callee);
  } else if (method && method->isVirtual()) {
    fact.target = unit.naming.id(callee);
  }
}

Reg FunctionLowering::finishCall(const CallExpr *call, const FunctionDecl *callee,
                                 std::vector<Operand> operands, bool hasObject, bool isVirtual,
                                 SourceLocation caret) {
  Fact fact;
  fact.kind = FactKind::Call;
  fact.hasObject = hasObject;
  fact.isVirtual = isVirtual;
  fact.resultIsAddress = call->isGLValue();
  fact.isDiscarded = llvm::is_contained(discardedCalls, call);
  const SourceLocation place = caret.isValid() ? caret : call->getBeginLoc();
  fact.inMacro = unit.source.inMacroBody(place);
  fact.inMacroArgument = unit.source.inMacroArgument(place);
  if (hasObject)
    describeObject(fact, call);
  fact.type = unit.types.id(call->getType());
  fact.where = locateCall(caret, call);
  fact.operands = std::move(operands);
  if (!callee)
    for (Operand &operand : fact.operands)
      operand.isMoved = false;
  if (callee) {
    describeCallee(fact, callee);
    markWritable(fact.operands, callee, hasObject ? 1 : 0);
    const auto *method = dyn_cast<CXXMethodDecl>(callee);
    if (hasObject && method && !fact.operands.empty())
      fact.operands[0].isWritable = !method->isConst() && !method->isStatic();
  }
  fact.isLaunch = isa<CUDAKernelCallExpr>(call);
  fact.isIndirect = !callee || isStdFunction(callee);
  if (fact.isIndirect)
    fact.hasObject = false;
  Reg reg = NoReg;
  if (!call->getType()->isVoidType())
    reg = fact.result = freshRegister();
  append(FactKind::Call) = std::move(fact);
  if (callee && callee->isNoReturn())
    unreachable();
  return reg;
}

std::optional<Reg> FunctionLowering::lowerBuiltinCall(const CallExpr *call) {
  const FunctionDecl *callee = call->getDirectCallee();
  if (!callee || !callee->getBuiltinID())
    return std::nullopt;
  if (callee->getBuiltinID() == Builtin::BI__builtin_expect)
    return lowerSame(call->getArg(0));
  if (!callee->getIdentifier() || !callee->getName().starts_with("__builtin"))
    return std::nullopt;
  Expr::EvalResult value;
  if (call->getType()->isIntegralOrEnumerationType() && !call->isValueDependent() &&
      call->EvaluateAsInt(value, context))
    return literal(LiteralKind::Int, toInt64(value.Val.getInt()), call->getType());
  return std::nullopt;
}

Reg FunctionLowering::lowerCall(const CallExpr *call) {
  if (const auto *operation = dyn_cast<CXXOperatorCallExpr>(call))
    return lowerOperatorCall(operation);
  if (const auto *member = dyn_cast<CXXMemberCallExpr>(call))
    return lowerMemberCall(member);
  if (std::optional<Reg> reg = lowerBuiltinCall(call))
    return *reg;
  if (const auto *destruction = dyn_cast<CXXPseudoDestructorExpr>(call->getCallee()->IgnoreParens())) {
    lowerDiscarded(destruction->getBase());
    return NoReg;
  }
  return call->getDirectCallee() ? lowerPlainCall(call) : lowerIndirectCall(call);
}

Reg FunctionLowering::lowerPlainCall(const CallExpr *call) {
  const FunctionDecl *callee = call->getDirectCallee();
  const Expr *written = call->getCallee()->IgnoreParenImpCasts();
  if (isIdentity(callee)) {
    const Expr *value = call->getArg(0);
    return lowerAddress(value);
  }
  if (const auto *member = dyn_cast<MemberExpr>(written);
      member && member->getBase()->HasSideEffects(context))
    lowerDiscarded(member->getBase());
  if (const auto *launch = dyn_cast<CUDAKernelCallExpr>(call))
    lowerDiscarded(launch->getConfig());
  std::vector<Operand> operands;
  for (const Expr *arg : call->arguments())
    operands.push_back(argument(arg, call));
  SourceLocation caret = written->getBeginLoc();
  if (const auto *member = dyn_cast<MemberExpr>(written))
    caret = member->getMemberLoc();
  return finishCall(call, callee, std::move(operands), false, false, caret);
}

Reg FunctionLowering::lowerIndirectCall(const CallExpr *call) {
  const Expr *callee = call->getCallee();
  if (const auto *binary = dyn_cast<BinaryOperator>(callee->IgnoreParens()); binary && binary->isPtrMemOp())
    return lowerMemberPointerCall(call, binary);
  std::vector<Operand> operands;
  operands.push_back(operand(callee));
  for (const Expr *arg : call->arguments())
    operands.push_back(argument(arg, call));
  return finishCall(call, nullptr, std::move(operands), false, false, callee->getBeginLoc());
}

Reg FunctionLowering::lowerMemberPointerCall(const CallExpr *call, const BinaryOperator *callee) {
  std::vector<Operand> operands(1);
  operands.push_back(objectOperand(callee->getLHS(), callee->getOpcode() == BO_PtrMemI));
  operands[0] = operand(callee->getRHS());
  for (const Expr *arg : call->arguments())
    operands.push_back(argument(arg, call));
  return finishCall(call, nullptr, std::move(operands), false, false, callee->getBeginLoc());
}

Reg FunctionLowering::lowerMemberCall(const CXXMemberCallExpr *call) {
  const Expr *callee = call->getCallee()->IgnoreParens();
  if (const auto *binary = dyn_cast<BinaryOperator>(callee))
    return lowerMemberPointerCall(call, binary);
  const auto *member = dyn_cast<MemberExpr>(callee);
  const CXXMethodDecl *method = call->getMethodDecl();
  if (!member || !method) {
    lowerOpaqueChildren(call);
    return opaque(call, call->getType());
  }
  if (isa<CXXConversionDecl>(method) && method->getParent()->isLambda()) {
    // A closure without captures becomes a function pointer.
    lowerDiscarded(member->getBase());
    const CXXMethodDecl *body = method->getParent()->getLambdaCallOperator();
    return functionValue(body, call);
  }
  std::vector<Operand> operands;
  operands.push_back(objectOperand(member->getBase(), member->isArrow()));
  for (const Expr *arg : call->arguments())
    operands.push_back(argument(arg, call));
  bool isVirtual = method->isVirtual() && !member->hasQualifier();
  bool isConversion = isa<CXXConversionDecl>(method);
  SourceLocation caret = isConversion ? call->getBeginLoc() : member->getMemberLoc();
  return finishCall(call, method, std::move(operands), true, isVirtual, caret);
}

const VarDecl *FunctionLowering::rangeElement(const Expr *expr) const {
  const auto *reference = dyn_cast<DeclRefExpr>(expr->IgnoreParenImpCasts());
  const auto *variable = reference ? dyn_cast<VarDecl>(reference->getDecl()) : nullptr;
  return variable && rangeElements.count(variable) ? variable : nullptr;
}

std::optional<Reg> FunctionLowering::lowerDefaultedAssignment(const CXXOperatorCallExpr *call) {
  const auto *method = dyn_cast_or_null<CXXMethodDecl>(call->getDirectCallee());
  if (!method || !(method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator()))
    return std::nullopt;
  if (!method->isDefaulted() && !method->isImplicit())
    return std::nullopt;
  const Expr *right = call->getArg(1);
  Reg value = lowerCopied(right, method->isMoveAssignmentOperator());
  Reg address = lowerAddress(call->getArg(0));
  store(address, value, false, right);
  function.blocks[current].facts.back().where = locate(call->getSourceRange());
  return address;
}

Reg FunctionLowering::lowerOperatorCall(const CXXOperatorCallExpr *call) {
  OverloadedOperatorKind kind = call->getOperator();
  if (kind == OO_Star && call->getNumArgs() == 1) {
    if (const VarDecl *begin = rangeElement(call->getArg(0))) {
      Reg address = rangeElements[begin];
      return call->isGLValue() ? address : load(address, call);
    }
  }
  if (std::optional<Reg> reg = lowerDefaultedAssignment(call))
    return *reg;
  const FunctionDecl *callee = call->getDirectCallee();
  if (!callee) {
    lowerOpaqueChildren(call);
    return opaque(call, call->getType());
  }
  if (const VarDecl *object = calledObject(call)) {
    std::vector<Operand> operands;
    for (unsigned i = 1; i < call->getNumArgs(); ++i)
      if (!isa<CXXDefaultArgExpr>(call->getArg(i))) // an order, a projection
        operands.push_back(argument(call->getArg(i), call));
    const Reg reg = finishCall(call, callee, std::move(operands), false, false, call->getBeginLoc());
    function.blocks[current].facts.back().name = unit.naming.qualified(object);
    return reg;
  }
  const auto *method = dyn_cast<CXXMethodDecl>(callee);
  bool hasObject = method && method->isImplicitObjectMemberFunction();
  std::vector<Operand> operands(call->getNumArgs());
  auto lower = [&](unsigned i) {
    const Expr *arg = call->getArg(i);
    operands[i] = i == 0 && hasObject ? objectOperand(arg, false) : argument(arg, call);
  };
  // The right operand of an assignment is sequenced before the left one.
  bool rightFirst = call->isAssignmentOp() && call->getNumArgs() == 2;
  if (rightFirst)
    lower(1);
  for (unsigned i = 0; i < call->getNumArgs(); ++i)
    if (i != 1 || !rightFirst)
      lower(i);
  bool isPostfixForm = kind == OO_Call || kind == OO_Subscript;
  SourceLocation caret = isPostfixForm ? call->getBeginLoc() : call->getOperatorLoc();
  bool isVirtual = method && method->isVirtual();
  return finishCall(call, callee, std::move(operands), hasObject, isVirtual, caret);
}

} // namespace devicetidy::frontend
