//===- FunctionLowering.h - a block of Python code as facts -----*- C++ -*-===//
//
// Every expression is a value in a register; lists, dictionaries and objects are addresses of the heap, as in
// Python all names are references. What a value is asked to do is decided where the program is run: such a
// call (isVirtual, without a target) has a name "python::method::append", and analyzer/solve/library/python
// knows what it does for a tensor, a module, a list.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/python/ClassShapes.h"
#include "analyzer/python/HookFunctions.h"
#include "analyzer/python/Modules.h"
#include "analyzer/python/ParameterNames.h"
#include "analyzer/python/TensorUses.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::python {

/// What all functions of a module add to.
struct UnitParts {
  Unit &unit;
  const Module &module;
};

/// What an argument list evaluates to: registers and, for keywords, their names ("*" and "**" for what is
/// spread).
struct Arguments {
  std::vector<Operand> operands;
  std::vector<Name> names;
  bool hasNames = false;
};

class FunctionLowering {
public:
  FunctionLowering(UnitParts parts, const FunctionLowering *around, Name className, std::string qualified);

  /// The body of a def, a lambda or a comprehension. Adds the function to the unit.
  /// `mark` is added to the name.
  void lowerFunction(const Node &function, const std::string &mark = {});
  /// The method that calls what `decorators` make of the method with the name `plain`.
  void lowerDecorated(const Node &method, const std::vector<Node> &decorators, const std::string &plain);
  /// The statements of a module or a class, those that `wanted` takes.
  void lowerBody(const Node &owner, const std::vector<Node> &statements, Name id, bool isMain);

  /// The data of a JSON file, as a function that gives it.
  void lowerData(const Node &value);

  /// Names it took from the functions around it, in the order in which its closure holds them.
  const std::vector<std::string> &captured() const { return captures; }
  Name id() const { return function.id; }

private:
  struct Loop {
    BlockId next, end;
    std::size_t managers; ///< that are open around it
  };
  /// A manager of `with`, and what entering it has given.
  struct Manager {
    int object, entered;
  };

  // Names (Names.cpp)
  Reg loadName(const Node &node, const std::string &name);
  void storeName(const Node &node, const std::string &name, const Operand &value);
  bool isLocal(const std::string &name) const { return locals.count(name) != 0; }
  bool mayCapture(const std::string &name) const;
  void capture(const std::string &name);
  /// The variable, where a name of the block is a local one; NoReg otherwise.
  Reg addressOf(const Node &node);
  Reg variableOf(const Node &node, const std::string &name);
  Reg global(const Node &node, Name id);
  /// The variable of a module of the project that `module.name` is.
  std::optional<Name> variableOfModule(const Node &node) const;
  /// For a question about `asked`: with the variable that it is, or is an attribute of.
  std::vector<Operand> withVariable(std::vector<Operand> operands, const Node &asked);
  /// What a name or a dotted name stands for, when it is fixed.
  std::optional<Meaning> meaningOf(const Node &node) const;
  std::optional<Meaning> writtenMeaning(const Node &node) const;
  Meaning modelled(const Meaning &meaning) const;
  Reg loadMeaning(const Node &node, const Meaning &meaning);
  bool isBound(const std::string &name) const;
  /// What a name means that is imported: here, in a function around, or in the module. Null where it is not.
  const Meaning *imported(const std::string &name) const;
  void addImports();
  bool isCopied(const std::string &name, const Meaning &meaning) const;
  void importStatement(const Node &node);
  /// Where a method finds what its class has captured.
  Name fieldOfCapture(const std::string &name) const;
  /// Finds the variables of `function` that functions in it assign, and makes what holds them.
  void addCells(const Node &function);
  std::string cellHolder() const { return "@cells of " + qualified; }
  /// Where such a variable of this function or of one around is; NoReg where it is none.
  Reg cellOf(const Node &node, const std::string &name);

  // Expressions (Expressions.cpp, Calls.cpp)
  Reg value(const Node &node);
  Reg literal(const Node &node);
  Reg joined(const Node &node);
  Reg attribute(const Node &node);
  Reg binary(const Node &node);
  Reg comparison(const Node &node, bool isCondition = false);
  Reg chosen(const Node &node); ///< `a if c else b`, `a and b`
  Reg sequence(const Node &node, bool areTensors = false);
  Reg dictionary(const Node &node);
  Reg subscript(const Node &node);
  Reg sliced(const std::vector<Node> &ends, const Node &node);
  Reg comprehension(const Node &node, bool areTensors = false);
  Reg call(const Node &node);
  Reg superCall(const Node &node);
  Reg closure(const Node &node, const FunctionLowering &inner);
  Reg classObject(const Node &node, Name type);
  Arguments arguments(const Node &call);
  std::vector<Operand> operandsOf(const std::vector<Node> &nodes);
  Operand operand(const Node &node);
  /// What `node` gives, as a tensor where only its use says that it is one.
  Operand tensorOperand(const Node &node);
  Operand tensorsOperand(const Node &node);
  bool isShape(const Node &node) const;
  Operand dimensions(const Node &shape);
  void noteDimensions(const Node &target, const Node &value);
  Operand asUsed(const Node &target, const Operand &value);
  Operand asWide(const Node &target, const Operand &value);
  void condition(const Node &node, BlockId whenTrue, BlockId whenFalse, bool entersLoop = false);

  // Statements (Statements.cpp, Loops.cpp)
  void statements(const std::vector<Node> &body);
  void statement(const Node &node);
  void assign(const Node &target, const Operand &value);
  void noteTensor(const Node &target);
  bool isMethodHere(const Node &value) const;
  void assignAll(const std::vector<Node> &targets, const Operand &value, const Node &where);
  Reg taken(const Operand &value, const Node &where, std::size_t i, std::size_t count, bool isStarred,
            bool isBehindRest);
  void ifStatement(const Node &node);
  void forLoop(const Node &node);
  void whileLoop(const Node &node);
  void tryStatement(const Node &node);
  void withStatement(const Node &node);
  void exitManagers(std::size_t from, const Node &node);
  std::vector<int> enterManagers(const Node &node, bool areNamed);
  void returnStatement(const Node &node);
  void define(const Node &node);
  void defineClass(const Node &node);
  void rangeTest(const Node &node, int range, BlockId body, BlockId end, bool entersLoop);
  void markLoop(BlockId head, std::size_t first);
  void loopBody(const Node &target, const Node &iterated, int range, const std::function<void()> &body);
  void comprehensionBody(const Node &node, std::size_t generator);

  void addSurroundings(bool isMain);

  // Generators that are managers (Managers.cpp)
  /// What is left to be done behind a yield: statements, and managers to exit, by their numbers.
  struct Part {
    std::vector<Node> statements;
    std::vector<int> managers;
  };
  bool isManager(const Node &function) const;
  void managerBody(const Node &function);
  void leaveManager(const Node &yielded, const std::vector<Part> &behind);
  void lowerRest(const Node &yielded, const std::vector<Part> &behind);

  // match (Match.cpp)
  void matchStatement(const Node &node);
  void pattern(const Node &node, int subject, BlockId fails);
  void sequencePattern(const Node &node, int subject, BlockId fails);

  // Parameters (Parameters.cpp)
  void addParameters(const Node &function, bool isMethod);
  void bindDefaults(const Node &function);
  void markWide(const Node &function);
  void addNamed(const Node &function, std::set<std::string> &tensors) const;
  /// The type of objects of a class of the program, where an annotation names one.
  Name objectType(const Node &annotation);
  Name typeOfObjects(const Meaning &ofClass);
  /// The same for the class that has what the function asks a parameter for.
  Name shapedType(const std::set<std::string> &asked);
  /// What functions around say that a parameter of this name holds; empty where none does, or not all the
  /// same.
  Name containerNamed(const std::string &name) const;
  const FunctionLowering &ofModule() const; ///< the module around
  /// The type of what an annotated attribute of a class holds, where it is never None.
  Name typeOfField(const Node &annotation);
  /// The types that the annotations of its parameters say, of those that are never None.
  std::map<std::string, Name> typesOfParameters(const Node &function);
  void addFields(const Node &definition, Type &type);

  // Building
  Fact fact(FactKind kind, const Node &node) const;
  Reg emit(Fact fact);
  Reg emitCall(const std::string &name, std::vector<Operand> operands, const Node &node,
               std::vector<Name> names = {});
  Reg loadLocal(int local, const Node &node);
  void storeLocal(int local, const Operand &value, const Node &node);
  Operand use(Reg reg, const Node &node, bool isAddress = false) const;
  Name typeOfClass();
  int newLocal(const std::string &name, Name type, const Node &node);
  void endStatement();
  BlockId newBlock();
  void jump(BlockId to);
  void branch(const Operand &value, BlockId whenTrue, BlockId whenFalse, bool entersLoop, const Node &node);
  void enter(BlockId block) { current = block; }
  bool isEnded() const;
  Block &block() { return function.blocks[static_cast<std::size_t>(current)]; }
  void finish();

  UnitParts parts;
  const FunctionLowering *around;
  Name className;
  std::string qualified; ///< name in the module: "Net.forward"
  std::string selfName;  ///< of the first parameter of a method
  bool isModuleBody = false, isClassBody = false, isMethod = false;
  Function function;
  Scope scope;
  std::map<std::string, Meaning> imports; ///< of this block
  TensorUses uses;
  ClassShapes shapes;   ///< of a module
  HookFunctions hooks;  ///< of a module
  ParameterNames named; ///< of a class or module: by what it defines
  std::map<std::string, int> locals;
  std::set<std::string> cells; ///< variables that functions in this one assign
  std::vector<std::string> captures;
  std::vector<Loop> loops;
  std::vector<BlockId> handlers;
  std::vector<Manager> managers; ///< open ones, the innermost last
  int yielded = -1;              ///< local that holds what a generator has given
  int entered = 0;               ///< numbers managers
  int nested = 0;                ///< numbers lambdas and comprehensions
  bool givesTensors = false;     ///< a comprehension whose elements are used as only tensors are
  BlockId current = 0;
  Reg nextRegister = 0;
};

/// How an operator of the syntax tree is written: "Add" as "+".
std::string operatorOf(const Node &node);
/// The type a parameter certainly or probably has ("at::Tensor", "c10::Device"), or none.
Name typeOfParameter(const TensorUses &uses, const Node &parameter, bool isForward);
/// Does a variable of the name hold a device, by convention?
bool isDeviceName(std::string_view name);
/// The type that an annotation says; empty where there is none.
Name typeOfAnnotation(const Node &annotation);

} // namespace devicetidy::python
