//===- Modules.h - what the models of torch::nn modules share ---*- C++ -*-===//
//
// A module is a record on the heap. What it registered is in hidden fields (Memory.h): parameters of its own,
// and the addresses of its submodules; Module::to moves those and nothing else. A container module also holds
// its modules in order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"
#include "analyzer/solve/library/torch/Devices.h"

namespace devicetidy {

/// The module that a holder, smart pointer or AnyModule value stands for; `where` is the value's own place.
Address moduleOf(const Call &call, const Value &value, const Address &where);
/// Argument `i` as text; a name made at run time is told by the place of the call.
std::string stringArgument(const Call &call, std::size_t i);

/// register_parameter and register_buffer: the module holds the tensor; the result is a handle on it.
Outcomes registerTensor(Call &call);
Outcomes registerModule(Call &call);
/// parameters(), buffers() and their named forms, as a list of handles.
Outcomes parameterList(Call &call, bool named);
/// The device all tensors are on; unknown when there is none, or several.
Placement commonPlacement(const Machine &machine, const Row &row, const std::vector<Value> &tensors);
/// The device all parameters of the module at `where` and below it are on; unknown when they are not all
/// known, or on several.
Placement modulePlacement(const Machine &machine, const Row &row, const Address &where);
/// children() and modules() and what they are with names: the modules registered in the call's object.
Outcomes moduleList(Call &call, std::string_view method);

/// Adds `child` to the modules that `container` holds, under `name` (empty: its number).
void appendChild(Call &call, const Address &container, const Address &child, const std::string &name);
/// A module argument of Sequential, ModuleList or AnyModule: a holder, a shared_ptr, or a module by value.
Address childModule(Call &call, const Argument &arg);
/// Adds the modules of a constructor's argument: one, or a list or dictionary of them.
void appendChildren(Call &call, const Address &container, const Argument &arg);
/// torch::nn::Functional keeps the callable and the arguments it adds.
void keepFunctional(std::map<Name, Value> &fields, const std::vector<Value> &args);
Outcomes forwardFunctional(Call &call, const Value &record, std::vector<Argument> args);
Outcomes forwardSequential(Call &call, const Address &module, std::vector<Argument> args);
/// Methods of the container module at `self`.
std::optional<Outcomes> modelContainerModule(Call &call, const Address &self, std::string_view method);
/// Methods of a ParameterList or ParameterDict at `self`: what it is given is registered in it.
std::optional<Outcomes> modelParameterContainer(Call &call, const Address &self, std::string_view method);
std::optional<Outcomes> modelAnyModule(Call &call, std::string_view method);

} // namespace devicetidy
