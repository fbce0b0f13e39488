//===- TensorUses.h - what is used as only a tensor is ----------*- C++ -*-===//
#pragma once

#include "analyzer/python/Modules.h"

#include <set>
#include <string>

namespace devicetidy::python {

/// The names that a block uses as only a tensor is used, those of them that it asks for their device, and
/// those it joins as lists of tensors.
struct TensorUses {
  std::set<std::string> tensors, asked, lists;
};
TensorUses tensorUses(const Module &module, const Node &function);

/// A method or an attribute that only tensors have.
bool isOfTensors(const std::string &name);
/// A call of a function of torch whose first argument is a tensor.
bool takesTensor(const Module &module, const Node &call);

} // namespace devicetidy::python
