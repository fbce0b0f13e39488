#include "autograd/ResultsPass.h"

#include "autograd/BackwardPass.h"

#include <device_shim/Error.h>

#include <torch/csrc/autograd/graph_task.h>

namespace device_shim::detail {
namespace {

// Not the gradients of chosen tensors alone.
bool allWanted() {
  const auto *chosen = torch::autograd::get_current_graph_task_exec_info();
  return chosen && chosen->empty();
}

} // namespace

void ResultsPass::follow(const std::vector<at::Tensor *> &outputs) {
  for (const auto *output : outputs)
    if (output->defined() && output->requires_grad() && !output->is_leaf())
      output->register_hook([tether = tether](const at::Tensor &) {
        if (allWanted() && !tether.reach([](ResultsPass &pass) { pass.reach(); }))
          throw UsageError(
              "the ShardedDataParallel whose forward() made this graph was destroyed before "
              "backward(), and the ranks would not exchange the gradients; keep it for as long as "
              "its results");
      });
}

bool ResultsPass::active() const {
  std::lock_guard<std::mutex> lock(mutex);
  return atWork;
}

void ResultsPass::reach() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (atWork)
      return;
    atWork = true;
    ++passes;
  }
  BackwardPass<ResultsPass>::follow(tether, passes);
  reached();
}

void ResultsPass::passEnds() {
  std::lock_guard<std::mutex> lock(mutex);
  atWork = false;
}

void ResultsPass::passFailed(uint64_t pass) noexcept {
  std::lock_guard<std::mutex> lock(mutex);
  if (pass == passes)
    atWork = false;
}

} // namespace device_shim::detail
