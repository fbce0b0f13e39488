#include <device_shim/ClipGradNorm.h>

#include "autograd/DenseGradient.h"
#include "params/ClipLimit.h"
#include "params/ShardedParts.h"
#include "params/WrapperClaim.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace device_shim {
namespace {

// Module::parameters() of the C++ frontend lists a tied parameter under each of its names.
std::vector<at::Tensor> gradientsOf(const std::vector<at::Tensor> &parameters) {
  std::set<const void *> seen;
  std::vector<at::Tensor> gradients;
  for (const auto &parameter : parameters) {
    const auto gradient = parameter.grad();
    if (!gradient.defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second)
      continue;
    detail::requireDenseGradient(gradient, "", "clip_grad_norm_");
    gradients.push_back(gradient.detach());
  }
  return gradients;
}

// A rank sees its own partitions only, and would clip them by a norm of its own.
void requireWhole(const std::vector<at::Tensor> &parameters) {
  if (!detail::spreadOver(parameters).empty() || detail::anySharded(parameters))
    throw UsageError(
        "clip_grad_norm_ got parameters of ShardedDataParallel, of whose gradients every rank has a "
        "part; call its unscale_and_clip_grads(max_norm), with the scaler where there is one");
}

} // namespace

double clip_grad_norm_(const std::vector<at::Tensor> &parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  if (!(norm_type > 0))
    throw UsageError("clip_grad_norm_ needs a norm_type above 0, not " + std::to_string(norm_type) +
                     "; 2 is usual, infinity takes the largest element");
  detail::requireClipLimit(max_norm, "clip_grad_norm_");
  requireWhole(parameters);
  at::NoGradGuard noGrad;
  const auto gradients = gradientsOf(parameters);
  std::map<std::string, std::vector<at::Tensor>> norms; // by device: one transfer each
  for (const auto &gradient : gradients)
    norms[gradient.device().str()].push_back(gradient.norm(norm_type).to(at::kDouble));
  const bool largest = std::isinf(norm_type);
  double total = 0;
  for (const auto &entry : norms) {
    const double norm = at::stack(entry.second).norm(norm_type).item<double>();
    // std::max() would drop a NaN.
    if (largest)
      total = std::isnan(norm) || norm > total ? norm : total;
    else
      total += std::pow(norm, norm_type);
  }
  if (!largest)
    total = std::pow(total, 1 / norm_type);
  if (error_if_nonfinite && !std::isfinite(total))
    throw Error(
        "the norm of the gradients is infinite or not a number, so they cannot be clipped; look for an "
        "overflow, or pass error_if_nonfinite = false");
  const double factor = max_norm / (total + 1e-6);
  // Not '< 1': a norm that is no number makes the gradients that, too, as in LibTorch.
  if (!(factor >= 1))
    for (const auto &gradient : gradients)
      gradient.mul_(factor);
  return total;
}

} // namespace device_shim
