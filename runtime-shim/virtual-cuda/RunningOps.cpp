#include "RunningOps.h"

#include "ForwardCalls.h"
#include "Origins.h"
#include "Reached.h"
#include "Records.h"

#include <c10/core/GradMode.h>

namespace vcuda {
namespace {

// A plain pointer: operators also run while thread-local objects are destroyed.
thread_local RunningOp *innermost = nullptr;
thread_local FinishedNode finishedNode;
AfterOp afterEachOp = nullptr; // set before operators are watched

std::unique_ptr<at::ObserverContext> enterOp(const at::RecordFunction &function) {
  const bool isNode = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  // No operator: forward() of a custom function in Python, a collective.
  if (!isNode && !function.operator_name())
    return nullptr;
  auto op = std::make_unique<RunningOp>();
  op->name = function.name();
  if (!isNode) {
    op->operatorName = function.operator_name();
    const auto inputs = function.inputs();
    op->inputs.assign(inputs.begin(), inputs.end());
  } else {
    op->forwardThread = function.forwardThreadId();
    op->sequenceNumber = function.seqNr();
  }
  const bool calledByOperator = innermost && innermost->operatorName;
  op->outer = innermost;
  innermost = op.get();
  if (reachedFile() && op->operatorName)
    noteReached(op->name, callStackOfOp());
  if (errorFile() && op->operatorName && newNodes()) {
    // Custom functions make their node before they run forward() without gradients.
    if (calledByOperator || !c10::GradMode::is_enabled())
      noteNewNodes(function.threadId(), callStackOfOp());
    else
      skipNewNodes();
  }
  return op;
}

void leaveOp(const at::RecordFunction &function, at::ObserverContext *context) {
  auto *op = static_cast<RunningOp *>(context);
  if (!op)
    return;
  if (!op->operatorName)
    finishedNode = {op->forwardThread, op->sequenceNumber};
  else if (errorFile() && newNodes())
    noteNewNodes(function.threadId(), callStackOfOp());
  if (afterEachOp && op->operatorName)
    afterEachOp(*op, function.outputs());
  innermost = op->outer;
}

// aten::empty, aten::empty_strided, aten::new_empty and their like.
bool isPlainFactory(const RunningOp &op) {
  const std::string &name = op.operatorName->name;
  return name.rfind("aten::empty", 0) == 0 || name.rfind("aten::new_empty", 0) == 0;
}

} // namespace

void watchOperators(AfterOp afterOp) {
  if (!originsAreKept() && !errorFile() && !reachedFile())
    return;
  prepareCallStacks();
  afterEachOp = afterOp;
  at::addGlobalCallback(at::RecordFunctionCallback(&enterOp, &leaveOp)
                            .needsInputs(true)
                            .needsOutputs(afterOp != nullptr)
                            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

FinishedNode lastFinishedNode() { return finishedNode; }

RunningOp *innermostOp() { return innermost; }

RunningOp *outermostOp() {
  RunningOp *result = nullptr;
  // An autograd node runs the program's own code in custom functions: what it calls is called by the program.
  for (RunningOp *op = innermost; op && op->operatorName; op = op->outer)
    result = op;
  return result ? result : innermost;
}

void noteOwnKernel() {
  if (innermost)
    innermost->ownKernel = true;
}

RunningOp *allocatingOp() {
  RunningOp *kernel = nullptr;
  RunningOp *op = innermost;
  for (; op && op->operatorName; op = op->outer)
    if (op->ownKernel)
      kernel = op;
  if (kernel)
    return kernel;
  op = innermost;
  while (op && op->operatorName && isPlainFactory(*op) && op->outer && op->outer->operatorName)
    op = op->outer;
  return op;
}

RunningOp *runningNode() {
  RunningOp *op = innermost;
  while (op && op->operatorName)
    op = op->outer;
  return op;
}

CallStack callStackOfOp() {
  RunningOp *op = outermostOp();
  if (!op || !op->operatorName)
    return CallStack::ofCaller();
  if (!op->stack)
    op->stack = CallStack::ofCaller();
  return *op->stack;
}

} // namespace vcuda
