//===- Modules.h - what the models of torch::nn modules share ---*- C++ -*-===//
//
// A module is a record on the heap. What it registered is in hidden fields (Memory.h): parameters of its own,
// and the addresses of its submodules; Module::to moves those and nothing else. A container module also holds
// its modules in order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/library/torch/Devices.h"

namespace devicetidy {

/// The object of the call as the user wrote it, in quotes.
std::string quotedObject(const Call &call);
/// Runs forward() of the module at `module`; `name` is how the user calls it.
/// `owner` is the history of the handle it is called through.
Outcomes forwardModule(Call &call, const Address &module, std::vector<Argument> args, const std::string &name,
                       const History &owner);
/// The history of a tensor or module that the call registers as `name` with the module at `self`; when that
/// was moved before, to another device than `placement`, the step says so.
History registeredIn(const Call &call, const Address &self, const std::string &name,
                     const Placement &placement, History before);
/// The same for all parameters of the module at `added`.
void noteRegistered(Call &call, const Address &self, const std::string &name, const Address &added);
/// Moves the module at `where`: everything registered in it and below.
void moveModule(Machine &machine, Row &row, const Address &where, const Placement &placement,
                const History &history);

/// The module that a holder, smart pointer or AnyModule value stands for; `where` is the value's own place.
Address moduleOf(const Call &call, const Value &value, const Address &where);
/// Before the line of the call, which stands for a name that is made at run time.
constexpr std::string_view madeAtLine = "at line ";
/// Argument `i` as text; a name made at run time is told by the place of the call.
std::string stringArgument(const Call &call, std::size_t i);

/// A tensor that is registered in a module or below it, and how the module names it ("blocks.0.weight"): not
/// where a part of that is not known.
struct RegisteredTensor {
  std::optional<std::string> path;
  Value handle;
};
std::vector<RegisteredTensor> registeredTensors(const Machine &machine, const Row &row,
                                                const Address &module);
/// The module that `module` names `path`; invalid where none is known.
Address submoduleAt(const Machine &machine, const Row &row, Address module, std::string_view path);

/// The device all tensors are on; unknown when there is none, or several.
Placement commonPlacement(const Machine &machine, const Row &row, const std::vector<Value> &tensors);
/// The device all parameters of the module at `where` and below it are on; unknown when they are not all
/// known, or on several.
Placement modulePlacement(const Machine &machine, const Row &row, const Address &where);

/// Where the module at `where` was moved to, as a device; null when it was not.
Value movedDevice(const Machine &machine, const Row &row, const Address &where);

/// Adds `child` to the modules that `container` holds, under `name` (empty: its number). `isOneOfSome`: it
/// stands for as many as a loop has made.
void appendChild(Call &call, const Address &container, const Address &child, const std::string &name,
                 bool isOneOfSome = false);
/// A module argument of Sequential, ModuleList or AnyModule: a holder, a shared_ptr, or a module by value.
Address childModule(Call &call, const Argument &arg);
/// The container module `container` with the modules in the arguments it is made of.
Value withModules(const Making &making, const Value &container);
/// torch::nn::Functional keeps the callable and the arguments it adds.
void keepFunctional(std::map<Name, Value> &fields, const std::vector<Argument> &args);
Outcomes forwardFunctional(Call &call, const Value &record, std::vector<Argument> args);
Outcomes forwardSequential(Call &call, const Address &module, std::vector<Argument> args);

} // namespace devicetidy
