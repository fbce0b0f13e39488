//===- Types.h - what kind of thing a C++ type is ---------------*- C++ -*-===//
#pragma once

#include "analyzer/facts/Program.h"

#include <unordered_map>

namespace devicetidy::models {
struct Module;
}

namespace devicetidy {

enum class TypeClass : std::uint8_t {
  Other,
  Tensor,
  Device,
  Options,
  String,
  Scalar,
  List,
  Map,
  Pair,
  Tuple,
  Pointer,
  Holder,
  AnyModule,
  Optional,
  Wrapper,
  Function,
  Variant,
  Example,
  Nothing, ///< nullopt_t: what stands for no value
  Record,
};

/// What an annotation of Python says of a parameter: it is a number, or a list or tuple of numbers.
inline const Name numberType("python::number"), numbersType("python::numbers");
/// The same: it is a module, of whatever class.
inline const Name moduleType("python::module");
/// What a module keeps under a name of its own: another one, or something else.
inline const Name partType("python::part of a module");
/// What a module that a caller passes gives: what is read from it is where it is.
inline const Name outputType("python::output of a module");
/// The type that the result of a call of Python has where it is differentiated.
inline const Name lossType("python::loss");

/// Before the type of what a container of Python holds that a caller passes.
constexpr std::string_view holdsType = "python::holds::";

/// The field for part `number` of a pair, a tuple or an example.
Name partName(TypeClass kind, std::size_t number);

/// Answers questions about the types of one program; caches.
class Types {
public:
  explicit Types(const Program &program) : program(program) {}

  TypeClass classOf(Name type) const;
  /// The word for the kind of thing a type is: that of library_types.csv for its class or a base of it,
  /// "module", "record", "scalar", or empty.
  std::string_view kindOf(Name type) const;
  /// Element of a list, pointee of a pointer, module of a holder, value of an optional or map.
  Name inner(Name type) const;
  /// Is a stream of a GPU among what `call` gets?
  bool takesStream(const Fact &call) const;
  /// The class without template arguments ("std::vector"); the type itself where it is no class.
  Name templateOf(Name type) const;
  /// Types of the parts of a pair, tuple or Example.
  std::vector<Name> parts(Name type) const;
  /// Type of field `field` of `type`, bases included; empty when unknown.
  Name fieldType(Name type, Name field) const;
  /// Is it a pointer of the language?
  bool isPointer(Name type) const;
  /// Is it the type of one function or class alone?
  bool hasOneValue(Name type) const;
  /// Is it a private or protected member of a class of the program?
  bool isPrivateField(Name type, Name field) const;
  const Field *field(Name type, Name field) const;
  bool derivesFrom(Name type, std::string_view templateName) const;
  /// A tensor, or a list or an optional of tensors, at any depth.
  bool holdsTensors(Name type) const;
  /// The same, or what leads to one: a structure with a tensor, a pointer to it.
  bool leadsToTensors(Name type, unsigned depth = 0) const;
  /// A built-in integer (bool is none) or an enumeration.
  bool isInteger(Name type) const;
  /// Derives from torch::nn::Module (or is it).
  bool isModule(Name type) const { return derivesFrom(type, "torch::nn::Module"); }
  bool isProject(Name type) const;
  /// The classes that derive from it.
  const std::vector<Name> &derivedFrom(Name type) const;
  /// Is it one that callers outside do not see? A class of Python shows what it has of a base with a private
  /// name.
  bool isHidden(const Function &function) const;
  /// The class and its bases in the order in which Python looks for attributes: each class before its own
  /// bases.
  const std::vector<Name> &lookupOrder(Name type) const;
  /// Is a class behind it one of a library that is not known?
  bool hasUnknownBase(Name type) const;
  /// The module of torch::nn that `type` is; null for any other class.
  const models::Module *builtinModule(Name type) const;
  /// The same for `type` or the nearest base that is one.
  const models::Module *builtinModuleBase(Name type) const;

  const Program &program;

private:
  TypeClass compute(Name type) const;
  mutable std::unordered_map<Name, TypeClass> classes;
  mutable std::unordered_map<Name, std::vector<Name>> derived, orders;
};

} // namespace devicetidy
