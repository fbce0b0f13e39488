//===- RunningOps.h - operators that are running ----------------*- C++ -*-===//
//
// Which operators this thread is running, with their arguments. Only known when records are asked for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CallStack.h"

#include <ATen/core/operator_name.h>
#include <ATen/record_function.h>
#include <c10/util/Optional.h>

#include <string>
#include <vector>

namespace vcuda {

struct RunningOp final : at::ObserverContext {
  std::string name;                              ///< aten::mm, or an autograd node's name
  c10::optional<c10::OperatorName> operatorName; ///< none for autograd nodes
  std::vector<c10::IValue> inputs;
  /// Of autograd nodes: the thread and number of the call that made it, see ForwardCalls.h.
  uint64_t forwardThread = 0;
  int64_t sequenceNumber = -1;
  RunningOp *outer = nullptr;
  bool ownKernel = false; ///< a kernel of this library runs it, see noteOwnKernel()
  /// Where the program called it; taken when first asked for.
  c10::optional<CallStack> stack;
};

/// Called when an operator is done, before its caller goes on.
using AfterOp = void (*)(const RunningOp &op, c10::ArrayRef<c10::IValue> results);

/// Starts watching when any kind of record is asked for; otherwise operators run as they always do.
void watchOperators(AfterOp afterOp = nullptr);

/// The operator this thread is in, or nullptr.
RunningOp *innermostOp();

/// The operator the program itself called: the first one that is not called by another operator.
RunningOp *outermostOp();

/// A kernel of this library begins to run the operator this thread is in. What it calls is how it works here,
/// and may see the operator's tensors as CPU tensors.
void noteOwnKernel();

/// The operator that wants the memory which is being allocated, as a GPU would have it: not how a kernel of
/// this library works, and not the factory that an operator gets its result from. nullptr outside of
/// operators.
RunningOp *allocatingOp();

/// The autograd node this thread is in, or nullptr.
RunningOp *runningNode();

/// The autograd node that this thread left last: who made it, as in RunningOp.
struct FinishedNode {
  uint64_t forwardThread = 0;
  int64_t sequenceNumber = -1;
};
FinishedNode lastFinishedNode();

/// The call stack of this thread, taken once per operator that the program calls.
CallStack callStackOfOp();

} // namespace vcuda
