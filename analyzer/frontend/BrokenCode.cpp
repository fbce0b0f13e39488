//===- BrokenCode.cpp - what clang could not parse ------------------------===//
//
// Its value is unknown, and it may have changed whatever it names.
//
//===----------------------------------------------------------------------===//
#include "analyzer/frontend/Compat.h"
#include "analyzer/frontend/FunctionLowering.h"

#include "clang/AST/DeclTemplate.h"
#include "clang/Basic/SourceManager.h"

namespace devicetidy::frontend {

using namespace clang;

bool isUnparsed(const Expr *expr) {
  if (isa<ParenListExpr>(expr)) // an initialiser that was not understood stays a bare list without a type
    return true;
  if (!expr->containsErrors())
    return false;
  const QualType type = expr->getType();
  return isa<RecoveryExpr>(expr) || type.isNull() || expr->isTypeDependent() || type->isPlaceholderType() ||
         (isa<InitListExpr>(expr) && type->isVoidType());
}

Reg FunctionLowering::unparsed(std::vector<Operand> operands, QualType type, SourceRange where) {
  ++unit.unit.opaqueExpressions[Name(unparsedCode)];
  Name typeName = unit.types.id(type);
  Location place = locate(where);
  Fact &fact = append(FactKind::Opaque);
  fact.type = typeName;
  fact.where = place;
  fact.operands = std::move(operands);
  return result(fact);
}

Reg FunctionLowering::lowerUnparsed(const Expr *expr) {
  std::vector<Operand> operands;
  collectNamed(expr, /*mayWrite=*/true, operands);
  return unparsed(std::move(operands), expr->getType(), expr->getSourceRange());
}

// An operator other than an assignment or `>>` leaves its operands alone.
void FunctionLowering::collectNamed(const Stmt *what, bool mayWrite, std::vector<Operand> &operands) {
  if (const auto *binary = dyn_cast<BinaryOperator>(what))
    mayWrite = binary->isAssignmentOp() || binary->getOpcode() == BO_Shr;
  if (const auto *unary = dyn_cast<UnaryOperator>(what))
    mayWrite = unary->isIncrementDecrementOp() || unary->getOpcode() == UO_AddrOf;
  if (const auto *overloads = dyn_cast<OverloadExpr>(what)) {
    for (const NamedDecl *decl : overloads->decls())
      addFunction(decl, overloads, operands);
    if (const auto *member = dyn_cast<UnresolvedMemberExpr>(what); member && member->isImplicitAccess())
      addSelf(member->getBeginLoc(), operands);
  }
  for (const Stmt *child : what->children())
    if (const auto *expr = dyn_cast_or_null<Expr>(child))
      isUnparsed(expr) || isa<OverloadExpr>(expr) ? collectNamed(expr, mayWrite, operands)
                                                  : addNamed(expr, mayWrite, operands);
}

void FunctionLowering::addNamed(const Expr *expr, bool mayWrite, std::vector<Operand> &operands) {
  const auto *reference = dyn_cast<DeclRefExpr>(expr->IgnoreParens());
  if (reference) {
    if (isa<FunctionDecl>(reference->getDecl()))
      return addFunction(reference->getDecl(), expr, operands);
    if (reference->getDecl()->isInvalidDecl() || !isa<VarDecl, BindingDecl>(reference->getDecl()))
      return;
  }
  if (const auto *member = dyn_cast<MemberExpr>(expr->IgnoreParens());
      member && isa<CXXMethodDecl>(member->getMemberDecl())) {
    addFunction(member->getMemberDecl(), expr, operands);
    return addNamed(member->getBase(), mayWrite, operands);
  }
  if (expr->getType()->isVoidType())
    return lowerDiscarded(expr);
  Operand given = operand(expr);
  given.isWritable = mayWrite && !expr->getType().isConstQualified();
  operands.push_back(std::move(given));
}

void FunctionLowering::addFunction(const NamedDecl *decl, const Expr *expr, std::vector<Operand> &operands) {
  decl = decl->getUnderlyingDecl();
  if (const auto *pattern = dyn_cast<FunctionTemplateDecl>(decl)) {
    for (const FunctionDecl *instance : pattern->specializations())
      addFunction(instance, expr, operands);
    return;
  }
  const auto *called = dyn_cast<FunctionDecl>(decl);
  if (called && unit.isProject(called))
    operands.push_back(use(functionValue(called, expr), false, nullptr));
}

// The object whose method this is, or that the closure holds; null in other functions.
Expr *FunctionLowering::selfAt(SourceLocation where) {
  const auto *method = dyn_cast<CXXMethodDecl>(decl);
  if (!method || !method->isInstance())
    return nullptr;
  const CXXRecordDecl *object = method->getParent();
  if (object->isLambda()) {
    const QualType held = thisCapture ? thisCapture->getType() : QualType();
    object = held.isNull()           ? nullptr
             : held->isPointerType() ? held->getPointeeCXXRecordDecl()
                                     : held->getAsCXXRecordDecl();
  }
  if (!object)
    return nullptr;
  return CXXThisExpr::Create(context, where, context.getPointerType(compat::typeOfTag(context, object)),
                             true);
}

void FunctionLowering::addSelf(SourceLocation where, std::vector<Operand> &operands) {
  Expr *self = selfAt(where);
  if (!self)
    return;
  const QualType type = self->getType()->getPointeeType();
  Operand object = use(lowerThis(self), true, nullptr);
  object.type = unit.types.id(type);
  object.isWritable = true;
  operands.push_back(std::move(object));
}

void FunctionLowering::addLost(const LostWord &word, SourceLocation where, std::vector<Operand> &operands) {
  const auto *member = dyn_cast_or_null<CXXMethodDecl>(word.decl);
  if (word.kind == LostWord::Self || (member && member->isInstance()))
    return addSelf(where, operands);
  if (const auto *pattern = dyn_cast<FunctionTemplateDecl>(word.decl)) {
    for (const FunctionDecl *instance : pattern->specializations())
      addLost({LostWord::Name, word.offset, instance}, where, operands);
    return;
  }
  const QualType type = isa<ValueDecl>(word.decl) ? cast<ValueDecl>(word.decl)->getType() : QualType();
  if (type.isNull() || type->isDependentType() || word.decl->isInvalidDecl())
    return;
  auto *named = const_cast<ValueDecl *>(cast<ValueDecl>(word.decl)); // the nodes made here change nothing
  const Expr *expr = nullptr;
  if (auto *field = dyn_cast<FieldDecl>(named)) {
    if (Expr *self = selfAt(where))
      expr = MemberExpr::CreateImplicit(context, self, true, field, type.getNonReferenceType(), VK_LValue,
                                        OK_Ordinary);
  } else {
    const auto *variable = dyn_cast<VarDecl>(named);
    const bool isKnown = locals.count(named) || captureFields.count(named) || isa<FunctionDecl>(named) ||
                         (variable && variable->hasGlobalStorage());
    if (isKnown)
      expr = DeclRefExpr::Create(context, {}, {}, named, false, where, type.getNonReferenceType(), VK_LValue);
  }
  if (expr)
    addNamed(expr, /*mayWrite=*/true, operands);
}

// Of the constructors of a class with a member that it does not know, clang keeps the written initialisers
// only.
void FunctionLowering::lowerLostInitializers(const CXXConstructorDecl *constructor) {
  llvm::DenseMap<const FieldDecl *, const CXXCtorInitializer *> written;
  for (const CXXCtorInitializer *initializer : constructor->inits())
    if (const FieldDecl *field = initializer->getAnyMember())
      written[field] = initializer;
    else
      lowerInitializer(initializer);
  for (const FieldDecl *field : constructor->getParent()->fields())
    if (const CXXCtorInitializer *initializer = written.lookup(field))
      lowerInitializer(initializer);
    else if (!field->isInvalidDecl())
      initializeByDefault(field);
}

void FunctionLowering::initializeByDefault(const FieldDecl *field) {
  const auto address = [&] { return fieldAddress(thisAddress(), field, field->getLocation()); };
  const CXXRecordDecl *record = field->getType()->getAsCXXRecordDecl();
  if (const Expr *init = field->getInClassInitializer()) {
    lowerInto(init, address());
  } else if (record && record->hasDefinition()) {
    const auto isDefault = [](const CXXConstructorDecl *each) {
      return each->isDefaultConstructor() && each->param_empty() && !each->isDeleted();
    };
    const auto found = llvm::find_if(record->ctors(), isDefault);
    if (found == record->ctor_end())
      return;
    auto *used = const_cast<CXXConstructorDecl *>(*found); // the node made here changes nothing
    construct(CXXConstructExpr::Create(context, field->getType(), field->getLocation(), used, false, {},
                                       false, false, false, false, CXXConstructionKind::Complete,
                                       field->getLocation()),
              address());
  }
  endFullExpression();
}

void FunctionLowering::forgetSelf(SourceLocation where) {
  std::vector<Operand> operands;
  addSelf(where, operands);
  unparsed(std::move(operands), context.VoidTy, where);
  endFullExpression();
}

void FunctionLowering::meetLost(SourceLocation end) {
  if (!lost || metLost == lost->words.size())
    return;
  const SourceManager &sources = context.getSourceManager();
  const auto [file, offset] = sources.getDecomposedLoc(sources.getFileLoc(end));
  if (file != lost->file)
    return;
  std::vector<Operand> operands;
  SourceLocation where;
  bool leaves = false;
  if (!isOpen())
    continueIn(newBlock());
  for (; metLost < lost->words.size() && lost->words[metLost].offset <= offset; ++metLost) {
    const LostWord &word = lost->words[metLost];
    where = sources.getComposedLoc(file, word.offset);
    if (word.kind == LostWord::Leave)
      leaves = true;
    else
      addLost(word, where, operands);
  }
  if (where.isInvalid())
    return;
  const Reg value = unparsed(std::move(operands), decl->getReturnType(), where);
  if (!leaves)
    return endFullExpression();
  Terminator terminator;
  terminator.kind = TerminatorKind::Return;
  terminator.where = locate(where);
  if (!decl->getReturnType()->isVoidType())
    terminator.value = use(value, false, nullptr);
  endTemporaries(takeTemporaries());
  endScopesDownTo(0);
  terminate(std::move(terminator));
}

} // namespace devicetidy::frontend
