// The gradients of the partitions of a model: which get some, their norm, and its clipping.
#include "ShardedModel.h"

#include "ClipLimit.h"

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

double ShardedModel::gradNorm() {
  at::NoGradGuard noGrad;
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
