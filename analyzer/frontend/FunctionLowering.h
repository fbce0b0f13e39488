//===- FunctionLowering.h - one body becomes a block graph ------*- C++ -*-===//
//
// Walks the statements of one function in evaluation order and writes facts. Glvalues become address
// registers, prvalues value registers; objects are constructed in place.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/frontend/UnitBuilder.h"

#include "clang/AST/ExprCXX.h"
#include "clang/AST/StmtCXX.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace devicetidy::frontend {

/// Is this an expression that clang kept without understanding it?
bool isUnparsed(const clang::Expr *expr);

class FunctionLowering {
public:
  /// `lost` is what clang could not parse of a broken function.
  FunctionLowering(UnitBuilder &unit, Function &function, std::optional<LostCode> lost = std::nullopt);

  void lowerFunction(const clang::FunctionDecl *function);
  /// A companion of `constructor` that takes its first `given` arguments (see delegationMark).
  void lowerDelegation(const clang::CXXConstructorDecl *constructor, unsigned given);
  void lowerGlobals(const std::vector<const clang::VarDecl *> &variables);

private:
  // Blocks (Blocks.cpp).
  BlockId newBlock();
  bool isOpen() const { return current >= 0; }
  void continueIn(BlockId block) { current = block; }
  void terminate(Terminator terminator);
  void jump(BlockId target);
  void branch(Operand condition, BlockId whenTrue, BlockId whenFalse, bool entersLoop);
  void branchEitherWay(BlockId first, BlockId second);
  void unreachable();
  Fact &append(FactKind kind);
  Reg result(Fact &fact);
  Reg freshRegister();
  Reg nextRegister = 0;
  void finish();

  // Scopes and temporaries (Scopes.cpp).
  struct JumpTarget {
    BlockId breakTo = -1;
    BlockId continueTo = -1;
    std::size_t breakDepth = 0; ///< deeper scopes end on the jump
    std::size_t continueDepth = 0;
  };
  void enterScope() { scopes.emplace_back(); }
  void leaveScope();
  void endScopesDownTo(std::size_t depth);
  std::int32_t addLocal(Name name, clang::QualType type, clang::SourceRange where);
  void addParameter(const clang::ParmVarDecl *parameter);
  std::int32_t declareVariable(const clang::VarDecl *variable);
  std::int32_t declareTemporary(clang::QualType type, const clang::Expr *expr,
                                bool outlivesExpression = false);
  std::vector<std::int32_t> takeTemporaries();
  void endTemporaries(const std::vector<std::int32_t> &list);
  void endFullExpression();
  void endStatement();
  void throwTo();

  // Helpers that add one fact.
  Reg localAddress(std::int32_t local);
  Reg load(Reg address, const clang::Expr *expr);
  Reg loadReference(Reg cell, const clang::Expr *expr);
  void store(Reg address, Reg value, bool valueIsAddress, const clang::Expr *expr);
  Reg literal(LiteralKind kind, std::int64_t number, clang::QualType type, Name text = {});
  Reg thisAddress();
  Reg operatorFact(const char *name, clang::QualType type, std::vector<Operand> operands, Location where);
  Reg opaque(const clang::Stmt *what, clang::QualType type);
  Operand use(Reg reg, bool isAddress, const clang::Expr *expr);
  Operand operand(const clang::Expr *expr);
  Location locate(clang::SourceRange range);
  Location locateCall(clang::SourceLocation caret, const clang::Expr *call);

  // Expressions (Expressions.cpp, Values.cpp, Operators.cpp, Conditions.cpp).
  Reg lowerAddress(const clang::Expr *expr);
  Reg lowerValue(const clang::Expr *expr);
  void lowerDiscarded(const clang::Expr *expr);
  Reg lowerVariable(const clang::DeclRefExpr *reference);
  Reg lowerVariableAddress(const clang::ValueDecl *variable, const clang::Expr *expr);
  Reg lowerCapture(const clang::ValueDecl *variable, const clang::Expr *expr);
  Reg lowerMember(const clang::MemberExpr *member);
  /// The address of the first element of `array`.
  Reg firstElement(const clang::Expr *array);
  Reg lowerSubscript(const clang::ArraySubscriptExpr *subscript);
  Reg lowerCastAddress(const clang::CastExpr *cast);
  Reg lowerCastValue(const clang::CastExpr *cast);
  Reg lowerDynamicCast(const clang::CastExpr *cast, Operand object);
  Reg lowerHandle(const clang::CastExpr *cast);
  Reg lowerPointerTarget(const clang::Expr *pointer);
  Reg lowerStringLiteral(const clang::Expr *expr);
  Reg lowerFunctionValue(const clang::Expr *expr);
  Reg functionValue(const clang::FunctionDecl *function, const clang::Expr *expr);
  Reg lowerThis(const clang::Expr *expr);
  Reg lowerAddressOf(const clang::Expr *target, const clang::Expr *expr);
  Reg lowerUnary(const clang::UnaryOperator *expr);
  Reg lowerBinary(const clang::BinaryOperator *expr);
  Reg lowerAssignment(const clang::BinaryOperator *expr);
  Reg lowerCompoundAssignment(const clang::CompoundAssignOperator *expr);
  Reg lowerIncrement(const clang::UnaryOperator *expr);
  Reg lowerLogical(const clang::Expr *expr);
  Reg lowerConditionalValue(const clang::AbstractConditionalOperator *expr);
  Reg lowerConditionalAddress(const clang::AbstractConditionalOperator *expr);
  void lowerConditionalInto(const clang::AbstractConditionalOperator *expr, Reg address);
  Reg lowerMemberPointer(const clang::BinaryOperator *expr);
  Reg lowerStatementExpression(const clang::StmtExpr *expr);
  Reg materialize(const clang::Expr *expr, const clang::MaterializeTemporaryExpr *materialization = nullptr);
  Reg lowerOther(const clang::Expr *expr);
  Reg lowerTypeid(const clang::CXXTypeidExpr *expr);
  Reg lowerSame(const clang::Expr *expr) { return expr->isGLValue() ? lowerAddress(expr) : lowerValue(expr); }
  Reg lowerDefault(const clang::Expr *inner, const clang::Expr *use, bool isMemberInit);
  Reg lowerTrait(const clang::Expr *expr);
  std::optional<Reg> lowerConstant(const clang::Expr *expr);
  void lowerOpaqueChildren(const clang::Stmt *what);

  /// Branches on a condition; the temporaries it made end at the start of both targets.
  void lowerCondition(const clang::Expr *condition, BlockId whenTrue, BlockId whenFalse,
                      bool entersLoop = false);
  void lowerBranch(const clang::Expr *condition, BlockId whenTrue, BlockId whenFalse, bool entersLoop,
                   bool negate);

  // Calls (Calls.cpp).
  Reg lowerCall(const clang::CallExpr *call);
  Reg lowerOperatorCall(const clang::CXXOperatorCallExpr *call);
  Reg lowerMemberCall(const clang::CXXMemberCallExpr *call);
  Reg lowerPlainCall(const clang::CallExpr *call);
  Reg lowerIndirectCall(const clang::CallExpr *call);
  Reg lowerMemberPointerCall(const clang::CallExpr *call, const clang::BinaryOperator *callee);
  std::optional<Reg> lowerBuiltinCall(const clang::CallExpr *call);
  std::optional<Reg> lowerDefaultedAssignment(const clang::CXXOperatorCallExpr *call);
  Operand objectOperand(const clang::Expr *object, bool isArrow);
  Operand argument(const clang::Expr *expr, const clang::Expr *call);
  Reg finishCall(const clang::CallExpr *call, const clang::FunctionDecl *callee,
                 std::vector<Operand> operands, bool hasObject, bool isVirtual, clang::SourceLocation caret);
  void describeTemplateArguments(Fact &fact, const clang::FunctionDecl *callee);
  void describeCallee(Fact &fact, const clang::FunctionDecl *callee);
  const clang::VarDecl *rangeElement(const clang::Expr *expr) const;

  // Construction (Construction.cpp, Aggregates.cpp).
  void lowerInto(const clang::Expr *expr, Reg address);
  /// The value that a plain copy of `source`, or a move, gives.
  Reg lowerCopied(const clang::Expr *source, bool isMove);
  void construct(const clang::CXXConstructExpr *expr, Reg address);
  static void markWritable(std::vector<Operand> &operands, const clang::FunctionDecl *callee,
                           std::size_t first);
  void describeConstructor(Fact &fact, const clang::CXXConstructorDecl *constructor);
  bool isPlainCopy(const clang::CXXConstructExpr *expr);
  const clang::Expr *copySource(const clang::CXXConstructExpr *expr) const;
  Operand passedOn(const clang::ParmVarDecl *parameter, Location where);
  void constructInherited(const clang::CXXInheritedCtorInitExpr *expr, Reg address);
  Reg lowerNew(const clang::CXXNewExpr *expr);
  Reg lowerNewArray(const clang::CXXNewExpr *expr);
  Reg lowerInitList(const clang::InitListExpr *list);
  Reg lowerParenInit(const clang::CXXParenListInitExpr *list);
  Reg lowerInitializerList(const clang::CXXStdInitializerListExpr *list);
  Reg aggregate(clang::QualType type, std::vector<Operand> operands, std::vector<Name> names,
                clang::SourceRange where);
  Reg lowerRecordList(clang::QualType type, const clang::FieldDecl *unionField,
                      llvm::ArrayRef<const clang::Expr *> inits, clang::SourceRange where);
  Reg lowerZero(clang::QualType type, clang::SourceRange where);
  void lowerInitializers(const clang::CXXConstructorDecl *constructor);
  void lowerInitializer(const clang::CXXCtorInitializer *initializer);
  void lowerLostInitializers(const clang::CXXConstructorDecl *constructor);
  void initializeByDefault(const clang::FieldDecl *field);
  Reg fieldAddress(Reg object, const clang::FieldDecl *field, clang::SourceRange where);

  // Lambdas (Lambdas.cpp).
  Reg lowerLambda(const clang::LambdaExpr *lambda);
  void prepareCaptures(const clang::CXXRecordDecl *lambda);

  // Statements (Statements.cpp, Loops.cpp, Declarations.cpp, Exceptions.cpp).
  void lowerStatement(const clang::Stmt *statement);
  void lowerExpressionStatement(const clang::Expr *expr);
  void lowerCompound(const clang::CompoundStmt *statement);
  void lowerIf(const clang::IfStmt *statement);
  void lowerSwitch(const clang::SwitchStmt *statement);
  void lowerCase(const clang::SwitchCase *statement);
  void lowerReturn(const clang::ReturnStmt *statement);
  void lowerLabel(const clang::LabelStmt *statement);
  BlockId labelBlock(const clang::LabelDecl *label);
  void lowerBreak(bool isContinue);
  void lowerTry(const clang::CXXTryStmt *statement);
  void lowerCatch(const clang::CXXCatchStmt *statement);
  void lowerThrow(const clang::CXXThrowExpr *expr);
  void lowerWhile(const clang::WhileStmt *statement);
  void lowerDo(const clang::DoStmt *statement);
  void lowerFor(const clang::ForStmt *statement);
  void lowerRangeFor(const clang::CXXForRangeStmt *statement);
  void lowerLoopTest(const clang::VarDecl *variable, const clang::Expr *condition, BlockId head, BlockId exit,
                     bool entersLoop);
  void lowerRangeTest(const clang::CXXForRangeStmt *statement, BlockId head, BlockId exit, bool entersLoop);
  Reg rangeAddress(const clang::VarDecl *range);
  void lowerRangeElement(const clang::CXXForRangeStmt *statement);
  void finishLoop(BlockId head, BlockId firstBlock);
  void finishAssertion(BlockId head, BlockId firstBlock, BlockId exit);
  void lowerDeclaration(const clang::Decl *decl);
  void lowerVariableDeclaration(const clang::VarDecl *variable);
  void initialize(const clang::VarDecl *variable, std::int32_t local, const clang::Expr *init);
  void initializeGlobal(const clang::VarDecl *variable);
  void lowerStaticLocal(const clang::VarDecl *variable);
  void lowerBindings(const clang::DecompositionDecl *decl);
  Name variableName(const clang::VarDecl *variable);

  // Broken code (BrokenCode.cpp).
  Reg lowerUnparsed(const clang::Expr *expr);
  void collectNamed(const clang::Stmt *unparsed, bool mayWrite, std::vector<Operand> &operands);
  void addNamed(const clang::Expr *expr, bool mayWrite, std::vector<Operand> &operands);
  void addFunction(const clang::NamedDecl *decl, const clang::Expr *expr, std::vector<Operand> &operands);
  clang::Expr *selfAt(clang::SourceLocation where);
  void addSelf(clang::SourceLocation where, std::vector<Operand> &operands);
  void forgetSelf(clang::SourceLocation where);
  void addLost(const LostWord &word, clang::SourceLocation where, std::vector<Operand> &operands);
  /// What is lost in the text before `end` may have changed what it names, or left the function.
  void meetLost(clang::SourceLocation end);
  Reg unparsed(std::vector<Operand> operands, clang::QualType type, clang::SourceRange where);

  UnitBuilder &unit;
  clang::ASTContext &context;
  Function &function;
  const std::optional<LostCode> lost;
  std::size_t metLost = 0; ///< how many of its words were met
  const clang::FunctionDecl *decl = nullptr;

  BlockId current = -1;
  BlockId handler = -1;
  std::size_t handlerScopeDepth = 0;
  std::vector<std::vector<std::int32_t>> scopes;
  std::vector<std::int32_t> temporaries;
  std::vector<JumpTarget> jumpTargets;
  /// Inside `({ ... })` the registers of the surrounding expression stay alive.
  int statementExpressionDepth = 0;
  /// The call that is an expression statement of its own.
  std::vector<const clang::Expr *> discardedCalls; ///< calls whose results the current statement discards
  /// Set while a default argument is lowered: its facts are located at the call.
  std::optional<Location> calledFrom;

  llvm::DenseMap<const clang::ValueDecl *, std::int32_t> locals;
  llvm::DenseMap<const clang::OpaqueValueExpr *, Reg> opaqueValues;
  llvm::DenseMap<const clang::SwitchCase *, BlockId> caseBlocks;
  llvm::DenseMap<const clang::LabelDecl *, BlockId> labels;
  /// `__begin` of a range-based for -> register with the address of the current element.
  llvm::DenseMap<const clang::VarDecl *, Reg> rangeElements;
  llvm::DenseMap<const clang::ValueDecl *, const clang::FieldDecl *> captureFields;
  const clang::FieldDecl *thisCapture = nullptr;
  bool capturesThisByCopy = false;
  /// Inside a default member initialiser of an aggregate, whose object has no address yet.
  bool inAggregateDefault = false;
};

} // namespace devicetidy::frontend
