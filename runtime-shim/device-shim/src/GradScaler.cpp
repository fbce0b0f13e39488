#include <device_shim/GradScaler.h>

#include <device_shim/Error.h>

#include <ATen/ATen.h>
#include <torch/optim/optimizer.h>

#include <cmath>
#include <map>

namespace device_shim {

GradScaler::GradScaler(const GradScalerOptions &wanted) : options(wanted), current(wanted.initial_scale) {
  if (!(options.initial_scale > 0) || options.growth_factor < 1 || !(options.backoff_factor > 0) ||
      options.backoff_factor > 1 || options.growth_interval < 1)
    throw UsageError(
        "GradScalerOptions need initial_scale > 0, growth_factor >= 1, 0 < backoff_factor <= 1 and "
        "growth_interval >= 1");
}

at::Tensor GradScaler::scale(const at::Tensor &loss) const { return loss * scale(); }

void GradScaler::unscale_(const std::vector<at::Tensor> &parameters) {
  at::NoGradGuard noGrad;
  const double factor = 1 / scale();
  // One number per device, read after all were started.
  std::map<std::string, at::Tensor> finite;
  for (const auto &parameter : parameters) {
    auto gradient = parameter.grad();
    if (!gradient.defined())
      continue;
    gradient.detach().mul_(factor);
    auto &sum = finite[gradient.device().str()];
    // A sum of zeros is a NaN as soon as one element is infinite or a NaN.
    auto zero = (gradient.detach() * 0).sum().to(at::kFloat);
    sum = sum.defined() ? sum + zero : zero;
  }
  bool all = true;
  for (const auto &entry : finite)
    all = all && std::isfinite(entry.second.item<float>());
  note_unscaled(all);
}

void GradScaler::unscale_(torch::optim::Optimizer &optimizer) {
  std::vector<at::Tensor> parameters;
  for (auto &group : optimizer.param_groups())
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  unscale_(parameters);
}

void GradScaler::note_unscaled(bool finite) {
  if (unscaled)
    throw UsageError("the gradients were unscaled already; call update() once after each step");
  unscaled = true;
  infinite = !finite;
}

bool GradScaler::step(torch::optim::Optimizer &optimizer) {
  if (!unscaled)
    unscale_(optimizer);
  if (infinite && options.enabled)
    return false;
  optimizer.step();
  return true;
}

void GradScaler::update() {
  if (options.enabled && unscaled) {
    if (infinite) {
      current *= options.backoff_factor;
      goodSteps = 0;
    } else if (++goodSteps >= options.growth_interval) {
      current *= options.growth_factor;
      goodSteps = 0;
    }
  }
  unscaled = infinite = false;
}

void GradScaler::load_state(const State &state) {
  current = state.scale;
  goodSteps = state.good_steps;
  unscaled = infinite = false;
}

} // namespace device_shim
