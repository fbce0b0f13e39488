//===- Fact.h - what one step of a function does ----------------*- C++ -*-===//
//
// A function body is a graph of blocks; a block is a list of facts and a terminator. Facts are C++ without
// the syntax: addresses, loads, stores, calls. They do not know LibTorch; analyzer/models describes callees
// and analyzer/solve interprets them. The frontend (clang) writes facts, all other parts only read them.
//
// Registers hold the result of a fact until the end of the full expression (FactKind::EndStatement clears
// them all). A register holds either an ADDRESS (the result of a glvalue expression: Local, Global, Field,
// Element, New, a call that returns a reference, `*p`) or a VALUE (a prvalue). A pointer value is an address,
// so dereferencing a raw pointer needs no fact. `Operand::isAddress` says which of the two the register holds
// in this use.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace devicetidy {

using Reg = std::int32_t;
constexpr Reg NoReg = -1;

constexpr std::string_view initialisedSuffix = "@initialised";

enum class FactKind : std::uint8_t {
  /// result = literal of `type`. `literal` says which; the value is in `number` (bool, int, enum) or `name`
  /// (string).
  Literal,
  /// result = address of local variable `number` (parameters come first: locals 0..params-1).
  Local,
  /// result = address of the global or static variable (or static member) `name` (id); `type` is its type.
  /// The id of a static local with initialisedSuffix is a flag, false until control came to its declaration.
  Global,
  /// result = the object address `this` points to.
  This,
  /// result = address of field `name` of the object at operand 0. Base-class fields use the plain field name.
  Field,
  /// result = address of element operand 1 of the built-in array at operand 0.
  Element,
  /// result = value at address operand 0.
  Load,
  /// *operand 0 = operand 1 (plain value copy: scalars, pointers, defaulted copies of records and library
  /// types).
  Store,
  /// result = call. See the fields below.
  Call,
  /// Constructs an object of class `type` in place at address operand 0 with operands 1.. . `target` is the
  /// id of the
  /// constructor, `name` its qualified name. Copies and moves by a defaulted or library constructor are Load
  /// + Store.
  Construct,
  /// result = address of a fresh heap object of `type` (a Construct follows where there is a constructor).
  /// For
  /// an array, operand 0 is the number of its elements, which are made by their default constructor.
  New,
  /// result = closure: `target` is the id of its call operator; operand i is the capture named captures[i]
  /// (an address
  /// for a by-reference capture, a value for a by-copy one; the capture of `this` is named "this" and is an
  /// address).
  Closure,
  /// result = built-in operator `name` over scalar or pointer operands: + - * / % == != < <= > >= ! & | ^ <<
  /// >> ~ neg; or "cast", which makes a pointer to an object of a class of a number or a pointer to something
  /// unnamed. Other casts are dropped. && || ?: are control flow.
  Operator,
  /// result = a record of `type` made from operands in field order (aggregate initialisation; captures[i] is
  /// the field
  /// name of operand i), or, where `type` is an array or std::initializer_list, the list of its operands.
  Aggregate,
  /// Local `number` begins its life, holding nothing.
  Declare,
  /// Local `number` ends its life (its destructor runs).
  EndScope,
  /// result = an unknown value of `type` (an expression that the frontend does not understand; counted). Code
  /// that could not be parsed has what it names as operands: it may write to those that are writable and to
  /// what they lead to, and call the functions.
  Opaque,
  /// A full expression ended: all registers are dead.
  EndStatement,
};

enum class LiteralKind : std::uint8_t { None, Bool, Int, Float, String, Null, Enum };

/// One use of a register.
struct Operand {
  Reg reg = NoReg;
  bool isAddress = false;
  /// Call, Construct, Opaque: the callee is given it to write to: the object of a method that is not const,
  /// what a reference or pointer parameter to something not const refers to. Not so for forwarding
  /// references.
  bool isWritable = false;
  /// Load: a move constructor or assignment takes the value away. Call, Construct: the callee is given an
  /// xvalue by rvalue reference, and may take its value away.
  bool isMoved = false;
  Name type;      ///< canonical non-reference type of the expression (key into Program::types)
  Location where; ///< range of the expression, as the user wrote it
  Name text;      ///< its source text, at most 60 characters
};

struct Fact {
  FactKind kind = FactKind::Opaque;
  LiteralKind literal = LiteralKind::None;
  bool hasObject = false; ///< Call: operand 0 is the object address of a member call
  /// Call: dispatched on operand 0's dynamic type (not for qualified calls). Without a target: what is called
  /// depends on what the operands are when it is run (isLateBound).
  bool isVirtual = false;
  bool isIndirect = false;      ///< Call: operand 0 is the callable (function pointer value, or address of a
                                ///< closure or std::function object); operands 1.. are the arguments
  bool resultIsAddress = false; ///< Call: returns a reference
  bool isDiscarded = false; ///< Call: the result is an expression statement of its own (not `(void)call()`)
  bool inMacro = false;     ///< Call, Construct: the text comes from a macro body
  bool inMacroArgument = false; ///< Call, Construct: the text is, or is part of, an argument of a macro
  /// Call with hasObject: the object is written as an lvalue that is not const, even if the method is const.
  bool isObjectAssignable = false;
  bool isObjectPointee = false; ///< Call with hasObject: `p->f()`; operand 0 has the text of `p`
  bool isLaunch = false;        ///< Call: of a kernel, `f<<<grid, block>>>()`, which runs on the current GPU
  Reg result = NoReg;
  std::int64_t number = 0;
  Name name;   ///< Call: qualified callee name without template arguments ("at::Tensor::to", "torch::zeros")
  Name target; ///< Call, Construct, Closure: function id (key into Program::functions)
  Name type;   ///< type of the result (Call: canonical, non-reference)
  std::vector<Operand> operands;
  /// Closure: names of captured variables; Aggregate: field names; Call that is late bound: the keywords of
  /// the operands, empty for positional ones, "*" and "**" for what is spread.
  std::vector<Name> captures;
  /// Call: type arguments of the callee (make_shared<T>: T), canonical; of Python, what the callee or its use
  /// says of the types: the class of a `super()`, python::loss of what is differentiated.
  std::vector<Name> templateTypes;
  std::vector<std::int64_t>
      templateNumbers; ///< Call: integral template arguments of the callee (std::get<1>: 1)
  Location where;      ///< Call: where a caret belongs (callee name or operator); range of the expression
};

/// Does what is called depend on what the operands are, as all calls of Python do?
inline bool isLateBound(const Fact &fact) {
  return fact.kind == FactKind::Call && fact.isVirtual && fact.target.empty();
}

enum class TerminatorKind : std::uint8_t { Jump, Branch, Switch, Return, Unreachable };

using BlockId = std::int32_t;

struct Terminator {
  TerminatorKind kind = TerminatorKind::Unreachable;
  Operand value; ///< Branch: condition. Switch: value. Return: result (reg == NoReg for void)
  /// Jump: one. Branch: {true, false}. Switch: one per case value, then the default. A Branch on NoReg goes
  /// either way.
  std::vector<BlockId> successors;
  std::vector<std::int64_t> cases; ///< Switch: case values, in the order of `successors`
  /// Branch: the zero-trip test in front of a loop; when the condition is unknown the loop is entered.
  bool entersLoop = false;
  Location where;
};

struct Block {
  std::vector<Fact> facts;
  Terminator terminator;
  BlockId handler = -1; ///< block of the innermost catch clauses around this block, or -1
  /// This block is a loop head: the scalars, iterators and other locals that the loop assigns or moves (they
  /// may vary from one iteration to the next).
  bool isLoopHead = false;
  std::vector<std::int32_t> variesInLoop;
};

} // namespace devicetidy
