//===- KernelCall.h - calls CPU kernels -------------------------*- C++ -*-===//
//
// One call of a CPU kernel on tensors of a virtual device, without copying a byte.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "OpTable.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

namespace vcuda {

inline bool isHalf(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

class KernelCall {
public:
  /// sparse: the operator was called for a sparse tensor, so the sparse CPU kernel runs.
  KernelCall(const OpInfo &info, c10::Device device, bool sparse, torch::jit::Stack &stack)
      : info_(info), device_(device), sparse_(sparse), stack_(stack) {}

  void run(const c10::OperatorHandle &op);

private:
  struct Alias {
    at::Tensor original;
    at::Tensor host;   ///< what the kernel sees; the original itself for a CPU tensor
    at::Tensor narrow; ///< set when host is a float copy: the half precision tensor that shares the bytes
    bool written;
  };

  void runOnce(const c10::OperatorHandle &op);
  void runHalf(const c10::OperatorHandle &op);
  bool hasHalfArgument(const c10::FunctionSchema &schema);
  bool takesTransposedForPlain(const c10::FunctionSchema &schema);
  void widenTypeArguments(const c10::FunctionSchema &schema);
  c10::IValue *arguments() { return &stack_[stack_.size() - info_.argCount]; }
  void enter();
  bool onlyOnCpu() const;
  void enterList(const Arg &arg, c10::IValue &value);
  const at::Tensor &aliasOf(const at::Tensor &tensor, bool written);
  at::Tensor makeAlias(const at::Tensor &tensor);
  void writeBack();
  void leave();
  at::Tensor resultOf(const at::Tensor &host);
  at::Tensor relabelled(const at::Tensor &host);

  const OpInfo &info_;
  c10::Device device_;
  bool sparse_;
  torch::jit::Stack &stack_;
  c10::SmallVector<Alias, 6> aliases_;
  /// While a half precision kernel that CPUs lack is computed in float: the type its results have.
  c10::optional<at::ScalarType> narrowType_;
  bool inFloat_ = false;
};

} // namespace vcuda
