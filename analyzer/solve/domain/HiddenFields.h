//===- HiddenFields.h - what values hold besides their own fields -*- C++ -*-===//
//
// A record of the program or of a library may hold, in a field that no program can name, what the analysis
// knows of it. Types that begin with '@' are those of values that only the analysis makes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"

namespace devicetidy::hidden {

// Modules
inline const Name parameters("@own");    ///< the parameters of a torch::nn module, as one tensor
inline const Name children("@children"); ///< the modules a container module holds, in order
inline const Name moved("@moved");       ///< the device to() has moved the module to
constexpr std::string_view parameterPrefix = "@p:", submodulePrefix = "@m:";
/// A tensor that is registered under `name`.
inline std::string parameter(Name name) { return std::string(parameterPrefix) + name.str(); }
/// The address of the module that is registered under `name`.
inline std::string submodule(Name name) { return std::string(submodulePrefix) + name.str(); }
inline bool isParameter(Name field) {
  return field == parameters || field.view().substr(0, parameterPrefix.size()) == parameterPrefix;
}
inline bool isSubmodule(Name field) {
  return field.view().substr(0, submodulePrefix.size()) == submodulePrefix;
}
/// The name under which it is registered; of other fields their own.
inline Name asRegistered(Name field) {
  const bool hasName = field != parameters && (isParameter(field) || isSubmodule(field));
  return hasName ? Name(field.view().substr(parameterPrefix.size())) : field;
}
/// Is it a field of any kind that no program has?
inline bool isHidden(Name field) { return !field.empty() && field.view().front() == '@'; }

// Sequences and maps
inline const Name head("@head"), tail("@tail"); ///< the known ends of a list of unknown length
inline const Name comparator("@compare");       ///< what compares the elements of an ordered container
inline const Name anyKey("@any");               ///< the entries of a map under all keys that are not known
inline const Name deviceKey("@device"); ///< those under keys that are made of a device that is not known
constexpr std::string_view each = "@each", some = "@some"; ///< before the field of an entry (Positions.h)
inline const Name mapEnd("@end");                          ///< the place behind the entries of a map
inline const Name first("@first"), count("@count");        ///< of a view: where it begins, how long it is

// Iterators
inline const Name reverseType("@reverse"), base("@base");
inline const Name inserterType("@inserter"), container("@container"), where("@where");
inline const Name elementType("@element"); ///< stands for the number at `where`, which has no address

// Functions
inline const Name callee("@callee"), arguments("@arguments"); ///< of what std::bind makes
inline const Name negated("@negated");                        ///< of what std::not_fn makes: the predicate
inline const Name function("@function"), bound("@bound");     ///< of a module: what it calls, what it adds
inline const Name placeholderType("@placeholder"); ///< an argument of the caller, its number at `where`

// Others
inline const Name saved("@saved"); ///< what an archive, a context or a file holds
inline const Name batch("@batch"), dataset("@dataset"), transform("@transform"), loaderType("@loader");
inline const Name deviceBefore("@device before");                                 ///< of a guard
inline const Name memoryType("@tensor memory"), tensor("@tensor"), text("@text"); ///< a pointer into a tensor
inline const Name optimized("@parameters"), state("@state"), keeps("@keeps");     ///< of optimizers
inline const Name path("@path"), item("@item"), name("@name");                    ///< of objects of Python

} // namespace devicetidy::hidden
