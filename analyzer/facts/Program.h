//===- Program.h - functions and types of translation units -----*- C++ -*-===//
//
// A Unit is what lowering one translation unit yields; a Program is several units linked by identity. Both
// are plain values: no clang, no I/O. The first definition of a function or type wins when units are linked
// in file order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Fact.h"

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace devicetidy {

/// A constructor with default arguments has companions whose id is its own, this mark and a number: each
/// takes that many arguments and delegates with the defaults for the rest. They are for make_shared and
/// emplace, whose calls do not show the defaults.
constexpr std::string_view delegationMark = "@with ";

/// The key of Unit::opaqueExpressions for what clang could not parse of a function that was lowered.
constexpr std::string_view unparsedCode = "code that cannot be parsed";

struct Variable {
  Name name;
  Name type;                ///< canonical type without reference
  bool isReference = false; ///< the local's cell holds an address
  bool isConst = false;     ///< const, or a reference to const
  Location where;
};

struct Function {
  Name id;   ///< USR; with the file path for anything without external linkage, with the offset for lambdas
  Name name; ///< qualified, without template arguments ("Net::forward"); lambdas: "<enclosing>::lambda"
  Name className; ///< canonical type of the class for methods and constructors, else empty
  Name resultType;
  bool resultIsReference = false;
  bool isConstructor = false;
  bool isDestructor = false;
  bool isStatic = false;
  bool isConst = false;
  bool isVirtual = false;
  bool isLambda = false;
  bool isMain = false;
  bool isModel = false;   ///< says what a function of a library does; no code of the program
  bool isPrivate = false; ///< a private or protected member, or without external linkage
  bool hasBody = false;
  bool isEntry = true;          ///< false: another program enters it. Decided for each program, not kept
  bool isVariadicTail = false;  ///< the last parameter is a C variadic
  std::vector<Name> overrides;  ///< ids of the base-class methods this one overrides (transitively)
  std::uint32_t paramCount = 0; ///< locals[0 .. paramCount) are the parameters
  std::uint32_t requiredParams = 0;
  std::vector<Variable> locals;
  std::vector<Block> blocks; ///< blocks[0] is the entry
  Reg registerCount = 0;
  Location where; ///< of the name in the declaration

  /// Of its body, as far as facts are in it.
  std::uint32_t lastLine() const;
};

enum class TypeKind : std::uint8_t { Void, Bool, Int, Float, Enum, Pointer, Array, Record, Function, Other };

struct Field {
  Name name;
  Name type; ///< canonical, without reference
  bool isReference = false;
  bool isPrivate = false; ///< or protected
  Location where;
};

struct Type {
  Name id; ///< canonical spelling without top-level const ("std::vector<at::Tensor>"), fully qualified
  TypeKind kind = TypeKind::Other;
  Name templateName; ///< Record: qualified name without arguments ("std::vector", "Net"; inline namespaces
                     ///< dropped); Function: its own id where only one class or function is of the type
  std::vector<Name> args;            ///< Record: type arguments that are types, packs flattened
  std::vector<std::int64_t> numbers; ///< Record: integral arguments; Array: its size
  Name pointee;                      ///< Pointer, Array: element type
  bool isProject = false;            ///< Record: defined in project code
  bool isPolymorphic = false;
  bool isAbstract = false;
  bool isLambda = false;
  std::vector<Name> bases;        ///< Record: canonical direct base types
  std::vector<Field> fields;      ///< Record: own fields of project classes and of plain library records
  std::vector<Name> constructors; ///< Record: ids of project constructors that are not copies or moves, then
                                  ///< of their companions (delegationMark)
  std::vector<Name> methods;      ///< Record: ids of project methods
  Location where;                 ///< Record: of its definition; invalid in units that only declare it
};

struct Global {
  Name id;
  Name name;
  Name type;
  bool isConst = false;
  Location where;
};

/// How a unit comes into a program.
enum class Joining : std::uint8_t {
  Linked,    ///< an object file: by the names it defines and uses
  Imported,  ///< a module: its code runs where it is imported, its main where it is started
  Packaged,  ///< a module of a package, which others than the project can import, too
  Everywhere ///< belongs to every program of modules
};

/// Facts of one translation unit.
struct Unit {
  Name mainFile;
  Joining joining = Joining::Linked;
  std::vector<Name> imports; ///< files of the project whose units a module imports
  /// The object files that the build makes of the unit, absolute and sorted; several when several targets
  /// compile it with equal arguments, none when it is unknown. Comes from the compile command, not from the
  /// parse.
  std::vector<Name> objects;
  int torchMajor = 0; ///< TORCH_VERSION_MAJOR as the code sees it, 0 when it includes no torch header
  int torchMinor = 0;
  std::map<Name, Function> functions;
  std::map<Name, Type> types;
  std::map<Name, Global> globals;
  /// Function that initialises the globals and statics of this unit in order (id), or empty.
  Name globalInit;
  /// Errors and notes of the parse: "file:line:col: message". Empty when the unit parsed cleanly.
  std::vector<std::string> parseErrors;
  bool hasFatalError = false;
  /// The host code of a CUDA source. It is read without CUDA, so its errors may come from the replacement
  /// headers.
  bool isCuda = false;
  std::map<Name, std::uint32_t> opaqueExpressions; ///< expression class -> how often it was not understood
  std::vector<Name> skippedFunctions; ///< project functions with errors or coroutines, not lowered
  /// Templates of the project with a body, and methods of such classes, that this unit makes no instance of.
  std::vector<Name> uninstantiated;
  /// Every file the unit read (for "no project code" and the cache).
  std::vector<Name> files;
};

/// Several units, linked.
struct Program {
  std::unordered_map<Name, Function> functions;
  std::unordered_map<Name, Type> types;
  std::unordered_map<Name, Global> globals;
  std::vector<Name> globalInits;
  std::unordered_map<Name, std::vector<Name>> imports; ///< of each file that is a module
  std::vector<Name> order; ///< ids of functions with a body in a stable order (file, line, column, id)
  /// base method id -> ids of functions with a body that override it, sorted.
  std::unordered_map<Name, std::vector<Name>> overriders;
  std::unordered_set<Name> derivedFrom; ///< classes that others derive from
  int torchMajor = 0;
  int torchMinor = 0;

  const Function *function(Name id) const;
  const Type *type(Name id) const;
};

/// Links units, in the order given, into one program.
Program link(std::vector<Unit> units);

} // namespace devicetidy
