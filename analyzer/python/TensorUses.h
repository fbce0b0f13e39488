//===- TensorUses.h - what is used as only a tensor is ----------*- C++ -*-===//
#pragma once

#include "analyzer/python/Modules.h"

#include <set>
#include <string>

namespace devicetidy::python {

/// The names that a block uses as only a tensor is used, those of them that it asks for their device,
/// those it joins as lists of tensors, those that hold more than one number if they are tensors, and those
/// that it assigns more than once: what is done with one of the values says nothing of another. `positions`
/// are the elements of a loop that are used as indices only: numbers. `losses` are the calls whose result is
/// differentiated, `forNumPy` what functions of NumPy are given, `arrays` the names in it.
struct TensorUses {
  std::set<std::string> tensors, asked, lists, wide, reassigned, positions, arrays;
  std::set<Location> losses, forNumPy;
};
/// Of a block that computes what NumPy is given (`isForNumPy`), what arrays have too is no tensor's.
TensorUses tensorUses(const Module &module, const Node &function, bool isForNumPy = false);

/// The dotted name of what a library has; empty for anything else.
std::string libraryName(const Module &module, const Node &callee);
/// x[:, 1], x[..., None]: an index that lists and dictionaries do not have.
bool hasSlices(const Node &index);
/// A method or an attribute that only tensors have.
bool isOfTensors(const std::string &name);
/// The same, or one that modules, optimizers, containers, texts or files have, too.
bool isOfMany(const std::string &name);
/// The arguments that are tensors whatever the call is given: not those that may be numbers.
std::vector<std::size_t> placesOfTensors(const Module &module, const Node &call);
/// A call of a function of torch that is given a list of tensors: cat, stack.
bool joinsTensors(const Module &module, const Node &call);

} // namespace devicetidy::python
