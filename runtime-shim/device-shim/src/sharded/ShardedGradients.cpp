// The gradients of the partitions of a model: which get some, their norm, and its clipping.
#include "sharded/ShardedModel.h"

#include "params/ClipLimit.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace device_shim::detail {

// A parameter may be frozen after wrapping, as those of a discriminator for a while: the ranks then must not
// wait for its gradient, and the optimizer must not get zeros for it, on which it would go on with momentum.
void ShardedModel::followFreezing() {
  for (auto &unit : units) {
    unit->trainable = 0;
    for (auto &partition : unit->partitions)
      unit->trainable += partition->followFreezing();
    unit->missing = unit->trainable;
  }
}

void ShardedModel::takeMarks() {
  if (!marked)
    return;
  marked = false;
  const FlatPartition::Member *changed = nullptr;
  for (auto *partition : partitions())
    if (const auto *member = partition->takeMarks(); member && !changed)
      changed = member;
  if (changed)
    throw UsageError(
        "the gradient of parameter " + changed->name +
        " was changed, but ShardedDataParallel has the gradients in its partitions: change those of "
        "optimizer_parameters(), or clip them with unscale_and_clip_grads()");
}

void ShardedModel::placeMarks() {
  for (auto *partition : partitions())
    partition->placeMarks();
  marked = true;
}

void ShardedModel::followZeroGrad() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  takeMarks();
  placeMarks();
}

// Of passes before the module was sharded: where zero_grad() of the optimizer reaches them.
void ShardedModel::takeEarlierGradients() {
  const auto parameters = module->parameters();
  const bool any = std::any_of(parameters.begin(), parameters.end(),
                               [](const at::Tensor &parameter) { return parameter.grad().defined(); });
  if (ranks->reduce_number(any ? 1 : 0, Reduction::maximum) == 0)
    return;
  for (auto *partition : partitions()) {
    for (size_t member = 0; partition->trainable() && member < partition->members().size(); ++member)
      partition->takeGradient(member);
    partition->startReduce(*ranks);
    partition->finishReduce();
    partition->finishArrival();
  }
  placeMarks();
}

double ShardedModel::gradNorm() {
  at::NoGradGuard noGrad;
  followZeroGrad();
  // Sums of squares on each device; they are added up on the host, because they may be on different ones.
  std::map<std::string, at::Tensor> squares;
  for (auto *partition : partitions()) {
    if (!partition->trainable() || !partition->master().grad().defined())
      continue;
    auto gradient = partition->master().grad().detach();
    if (gradient.is_complex())
      gradient = at::view_as_real(gradient);
    auto square = gradient.norm(2, at::kDouble).square();
    auto &sum = squares[gradient.device().str()];
    sum = sum.defined() ? sum + square : square;
  }
  double total = 0;
  for (const auto &entry : squares)
    total += entry.second.item<double>();
  return std::sqrt(ranks->reduce_number(total, Reduction::sum));
}

double ShardedModel::unscaleAndClip(double maxNorm, GradScaler *scaler) {
  requireClipLimit(maxNorm, "unscale_and_clip_grads");
  at::NoGradGuard noGrad;
  const double scale = scaler ? scaler->scale() : 1;
  const double norm = gradNorm() / scale;
  const bool finite = std::isfinite(norm);
  if (scaler)
    scaler->note_unscaled(masters(), finite);
  if (!finite)
    return norm;
  // As torch.nn.utils.clip_grad_norm_ does it.
  const double factor = std::min(1.0, maxNorm / (norm + 1e-6)) / scale;
  if (factor != 1)
    for (auto *partition : partitions())
      if (partition->trainable() && partition->master().grad().defined())
        partition->master().grad().mul_(factor);
  return norm;
}

} // namespace device_shim::detail
