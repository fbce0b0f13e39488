//===- OpTable.h - rules of operators ---------------------------*- C++ -*-===//
//
// What the run-time needs to know about an operator: its device rule and where its tensors are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace vcuda {

enum class Rule {
  Strict,         ///< the generated CUDA wrapper's check: every tensor on one device
  Iterator,       ///< TensorIterator: as strict, but with its own text
  IteratorScalar, ///< TensorIterator that lets one 0-dim CPU input join
  Index,          ///< indices on the CPU or on self's device
  IndexPut,       ///< indices anywhere; value with self, or 0-dim
  MaskedFill,     ///< self and mask together; 0-dim value anywhere
  IndexFill,      ///< self and index together; 0-dim value anywhere
  Where,
  BinaryCrossEntropy,
  Addcmul, ///< from 2.7 on: a 0-dim CPU input may be the last
  Lerp,    ///< from 2.0 on: a 0-dim CPU input may be the weight
  Convolution,
  Foreach, ///< mixed lists fall back to one call per tensor
  Any,     ///< no requirement
};

struct OpRule {
  const char *version;
  const char *op;
  Rule rule;
  const char *method;
};

/// The method of copy_, the one operator whose tensors may be anywhere and that moves bytes between devices.
inline constexpr const char *kCopyMethod = "_copy_";

/// The rules of the LibTorch release this library is built for. One table holds all releases: schemas and
/// the names in error texts differ, so a rule of another release would be a guess. An operator without a
/// rule has no CUDA kernel in that release and stays unregistered; sparse tensors are checked strictly.
std::vector<OpRule> opRules();

enum class ArgKind { Tensor, TensorList, Generator, Device };

struct Arg {
  size_t index;
  ArgKind kind;
  bool written;
  bool isOut;
  bool isKeyword; ///< an input after the '*' of the schema, at which CUDA's wrappers do not look
  std::string name;
};

struct OpInfo {
  Rule rule;
  std::string method;
  size_t argCount;
  size_t returnCount;
  bool hasInputType; ///< takes an input_dtype, as gradients of softmax do
  /// Only the arguments that matter here, outputs first, as the checks visit them.
  std::vector<Arg> args;
};

OpInfo describe(const c10::FunctionSchema &schema, Rule rule, std::string method);

/// Calls visit(arg, tensor) for every defined tensor among the arguments, in checking order.
template <typename Visit> void forEachTensor(const OpInfo &info, const c10::IValue *values, Visit visit) {
  for (const Arg &arg : info.args) {
    const c10::IValue &value = values[arg.index];
    if (value.isTensor()) {
      if (value.toTensor().defined())
        visit(arg, value.toTensor());
    } else if (arg.kind == ArgKind::TensorList && value.isList()) {
      for (const c10::IValue &element : value.toListRef())
        if (element.isTensor() && element.toTensor().defined())
          visit(arg, element.toTensor());
    }
  }
}

} // namespace vcuda
