// The backward passes of a sharded module: which stages are gathered for them, and when gradients are
// reduced.
#include "sharded/ShardedModel.h"

#include "autograd/BackwardPass.h"

#include <device_shim/Error.h>

#include <algorithm>
#include <exception>

namespace device_shim::detail {

void ShardedModel::endForward(const std::vector<at::Tensor *> &outputs) {
  if (options.stage == 2)
    resultsPass.follow(outputs);
}

// A step since the forward pass has changed this rank's part of what autograd saved, and autograd goes on
// with new values, as in one process. The other parts must be new, too.
void ShardedModel::passReachesResults() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!backwardActive)
    synchronize(passedSince);
}

// For a graph that was not made in forward() it is unknown whether it was made before or after a step. All
// ranks come here, and compare what others have changed.
void ShardedModel::requireCurrentParameters() {
  bool current = true;
  for (auto *partition : partitions())
    current = partition->follow(*gathers) && current;
  current = ranks->reduce_number(current ? 1 : 0, Reduction::minimum) == 1;
  passedSince = false;
  lagging.set(false);
  if (!current)
    throw UsageError(
        "a backward pass came to parameters that an optimizer had changed since the last forward() of "
        "ShardedDataParallel, and not through results of it: this rank computed with its own part of the new "
        "parameters and old ones of the others. Call forward() of the wrapper, not of the module, or "
        "begin_forward(), after each step(), and return tensors or containers of them from forward()");
}

void ShardedModel::beginBackward() {
  if (backwardActive)
    return;
  if (options.stage == 2 && passedSince && !resultsPass.active())
    requireCurrentParameters();
  backwardActive = true;
  memoryCount();
  orderReductions();
  BackwardPass<ShardedModel>::follow(tether, ++passes);
}

// Gradients come in the reverse of the order in which the stages ran; a stage that ran twice has its when
// autograd is through with its first run. All ranks run the stages in one order. With ZeRO 2, where nothing
// runs in stages, the ranks agree on an order in the first pass: one in which gradients do not come would let
// them all wait, in memory.
void ShardedModel::orderReductions() {
  if (orderKnown)
    return;
  reduceOrder.clear();
  agreeing = options.stage == 2;
  if (agreeing)
    return;
  for (const auto unit : order)
    if (std::find(reduceOrder.begin(), reduceOrder.end(), unit) == reduceOrder.end())
      reduceOrder.push_back(unit);
  std::reverse(reduceOrder.begin(), reduceOrder.end());
  listOthers();
}

// What did not run, or not on all ranks, comes last.
void ShardedModel::listOthers() {
  std::vector<bool> listed(units.size());
  for (const auto unit : reduceOrder)
    listed[unit] = true;
  for (size_t i = units.size(); i-- > 0;)
    if (!listed[i])
      reduceOrder.push_back(i);
}

// `unit`: that is complete now; none when the pass ends here. They agree as long as all say the same.
// Collective.
void ShardedModel::agreeOnNext(std::optional<size_t> unit) {
  const double number = unit ? static_cast<double>(*unit) : -1;
  const double least = ranks->reduce_number(number, Reduction::minimum);
  const double most = ranks->reduce_number(number, Reduction::maximum);
  agreeing = unit && least == most;
  if (agreeing)
    reduceOrder.push_back(*unit);
  else
    listOthers();
}

void ShardedModel::beforeStageBackward(size_t index, StageUse &use) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  auto &unit = *units[index];
  if (at::GradMode::is_enabled())
    throw UsageError("a backward pass with create_graph=true came to stage '" + unit.name +
                     "': ShardedDataParallel with stage 3 has no gradients of gradients, because they need "
                     "parameters that it has freed; use stage 2 or DistributedDataParallel");
  beginBackward();
  leaveBehind(use.number);
  unit.uses.reach(use);
  unit.inBackward = true;
  gather(unit);
  prefetchBefore(use);
}

// Autograd comes to an earlier use, and is through with the stages that were used after it: their parameters
// are not needed any more, and those that have no gradient get none.
void ShardedModel::leaveBehind(uint64_t use) {
  for (auto &unit : units) {
    if (!unit->inBackward || !unit->uses.leftBehind(use))
      continue;
    if (unit->uses.allLeftBehind(use))
      unit->missing = 0;
    // Another use gathers them again. That must not depend on which gradients came: ranks may differ in it.
    release(*unit);
    unit->inBackward = false;
  }
  reduceReady();
}

void ShardedModel::prefetchBefore(const StageUse &use) {
  if (options.prefetch && use.position > 0 && use.position < order.size())
    startGather(*units[order[use.position - 1]]);
}

void ShardedModel::beforeGradient() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  takeMarks();
}

void ShardedModel::gradientReady(size_t index, size_t partition, size_t member) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  beginBackward();
  auto &unit = *units[index];
  unit.partitions[partition]->requireLearning(member);
  if (unit.missing == 0)
    throw UsageError("parameters of stage '" + unit.name +
                     "' got gradients twice in one backward pass, or after it had gone on to stages that ran "
                     "earlier, as with nested backward passes, which ShardedDataParallel does not support");
  if (options.stage == 3 && !unit.inBackward)
    throw UsageError(
        "a parameter of stage '" + unit.name +
        "' got a gradient that did not come through the results of the stage, so that it was not "
        "gathered; use parameters inside their stage only, and return all tensors from it");
  unit.partitions[partition]->takeGradient(member);
  --unit.missing;
  if (agreeing && unit.missing == 0)
    agreeOnNext(index);
  reduceReady();
}

// In the same order on every rank, for any order in which gradients arrived.
void ShardedModel::reduceReady() {
  while (nextToReduce < reduceOrder.size() && units[reduceOrder[nextToReduce]]->missing == 0)
    reduce(*units[reduceOrder[nextToReduce++]]);
}

// One reduction is under way while the gradients of the next unit are computed.
void ShardedModel::reduce(Unit &unit) {
  if (unit.trainable == 0)
    return;
  finishReduce();
  for (auto &partition : unit.partitions)
    partition->startReduce(*ranks);
  reducing = &unit;
}

void ShardedModel::finishReduce() {
  if (!reducing)
    return;
  for (auto &partition : reducing->partitions)
    partition->finishReduce();
  reducing = nullptr;
}

// Runs at the end of the backward pass, on the thread that called backward().
void ShardedModel::passEnds() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  try {
    if (!begun) // the module's own forward() was called
      known.requireNoneAdded(*module, "ShardedDataParallel");
    if (agreeing)
      agreeOnNext(std::nullopt);
    for (auto &unit : units)
      unit->missing = 0;
    reduceReady();
    finishReduce();
    for (auto *partition : partitions())
      partition->finishArrival();
  } catch (...) {
    resetBackward();
    throw;
  }
  orderKnown = options.stage == 2;
  stepsTaken = passedSince = true;
  begun = false;
  lagging.set(true);
  resetBackward();
}

void ShardedModel::passFailed(uint64_t pass) noexcept {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!backwardActive || pass != passes)
    return;
  try {
    resetBackward();
  } catch (const std::exception &) {
    // Another rank has failed, which the next forward pass says.
  }
}

void ShardedModel::resetBackward() {
  for (auto &unit : units) {
    for (auto &partition : unit->partitions)
      partition->abandonGradient();
    release(*unit);
    unit->missing = unit->trainable;
    unit->uses.endPass();
    unit->inBackward = false;
  }
  reducing = nullptr;
  nextToReduce = 0;
  backwardActive = agreeing = false;
  placeMarks();
}

} // namespace device_shim::detail
