#include <device_shim/GradScaler.h>

#include "autograd/DenseGradient.h"
#include "params/ShardedParts.h"
#include "params/WrapperClaim.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>

#include <cmath>
#include <string>

namespace device_shim {
namespace {

const void *identity(const at::Tensor &parameter) { return parameter.unsafeGetTensorImpl(); }

std::vector<at::Tensor> parametersOf(torch::optim::Optimizer &optimizer) {
  std::vector<at::Tensor> parameters;
  for (auto &group : optimizer.param_groups())
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  detail::requireNotSharded(parameters);
  if (detail::anyEnded(parameters))
    throw UsageError("the optimizer works on partitions of a ShardedDataParallel that has ended, where no "
                     "gradients come to; make it again, of optimizer_parameters() of the current wrapper");
  return parameters;
}

// A rank sees its own partitions only, and would step in a direction of its own.
void requireElementwise(const torch::optim::Optimizer &optimizer, const std::vector<at::Tensor> &parameters) {
  if (dynamic_cast<const torch::optim::LBFGS *>(&optimizer) && !detail::spreadOver(parameters).empty())
    throw UsageError(
        "LBFGS cannot work on the partitions of ShardedDataParallel, because its steps depend on "
        "all parameters at once; take another optimizer, or DistributedDataParallel");
}

bool isScale(double value) { return value > 0 && std::isfinite(value); }

// The scale keeps small gradients from vanishing in half precision: without it they do.
void requireNoHalf(const std::vector<at::Tensor> &parameters) {
  for (const auto &parameter : parameters)
    if (parameter.grad().defined() && parameter.grad().scalar_type() == at::kHalf)
      throw UsageError(
          "GradScaler cannot unscale gradients in half precision, where small ones become 0; keep "
          "the parameters float, or take ShardedDataParallel with parameter_type kHalf, whose "
          "optimizer works on float copies");
}

// Multiplies the gradients by `factor`. Returns whether all are finite.
bool scaleGradients(const std::vector<at::Tensor> &parameters, double factor) {
  at::NoGradGuard noGrad;
  // One number per device, read after all were started.
  std::map<std::string, at::Tensor> finite;
  std::set<const void *> seen; // named_parameters() lists tied parameters several times
  for (const auto &parameter : parameters) {
    auto gradient = parameter.grad();
    if (!gradient.defined() || !seen.insert(identity(parameter)).second)
      continue;
    detail::requireDenseGradient(gradient, "", "GradScaler");
    gradient.detach().mul_(factor);
    auto &sum = finite[gradient.device().str()];
    // A sum of zeros is a NaN as soon as one element is infinite or a NaN.
    auto zero = (gradient.detach() * 0).sum().to(at::kFloat);
    sum = sum.defined() ? sum + zero : zero;
  }
  bool all = true;
  for (const auto &entry : finite)
    all = all && std::isfinite(entry.second.item<float>());
  return all;
}

} // namespace

GradScaler::GradScaler(const GradScalerOptions &wanted) : options(wanted), current(wanted.initial_scale) {
  if (!isScale(options.initial_scale) || !(options.growth_factor >= 1) || std::isinf(options.growth_factor) ||
      !(options.backoff_factor > 0) || !(options.backoff_factor <= 1) || options.growth_interval < 1)
    throw UsageError(
        "GradScalerOptions need initial_scale > 0, growth_factor >= 1, 0 < backoff_factor <= 1 and "
        "growth_interval >= 1, all of them finite");
}

at::Tensor GradScaler::scale(const at::Tensor &loss) const { return loss * scale(); }

void GradScaler::unscale_(const std::vector<at::Tensor> &parameters) {
  if (!options.enabled)
    return;
  requireScaled(parameters);
  requireNoHalf(parameters);
  bool finite = scaleGradients(parameters, 1 / scale());
  // A rank sees its own partitions only, and all must take the step or none.
  for (const auto &ranks : detail::spreadOver(parameters))
    finite = ranks->reduce_number(finite ? 1 : 0, Reduction::minimum) == 1;
  note_unscaled(parameters, finite);
}

void GradScaler::unscale_(torch::optim::Optimizer &optimizer) { unscale_(parametersOf(optimizer)); }

void GradScaler::requireScaled(const std::vector<at::Tensor> &parameters) const {
  for (const auto &parameter : parameters)
    if (unscaled.count(identity(parameter)))
      throw UsageError("the gradients were unscaled already; call update() once, after the steps of all "
                       "optimizers");
}

void GradScaler::note_unscaled(const std::vector<at::Tensor> &parameters, bool finite) {
  if (!options.enabled)
    return;
  requireScaled(parameters);
  for (const auto &parameter : parameters)
    unscaled[identity(parameter)] = finite;
  infinite = infinite || !finite;
}

bool GradScaler::step(torch::optim::Optimizer &optimizer) {
  if (!options.enabled) {
    optimizer.step();
    return true;
  }
  if (!stepped.insert(&optimizer).second)
    throw UsageError("this optimizer had its step already; call update() before the next one");
  const auto parameters = parametersOf(optimizer);
  requireElementwise(optimizer, parameters);
  std::vector<at::Tensor> scaled;
  for (const auto &parameter : parameters)
    if (!unscaled.count(identity(parameter)))
      scaled.push_back(parameter);
  if (!scaled.empty())
    unscale_(scaled);
  bool finite = true;
  for (const auto &parameter : parameters)
    finite = finite && unscaled.at(identity(parameter));
  if (!finite)
    return false;
  optimizer.step();
  return true;
}

void GradScaler::update() {
  if (options.enabled && !unscaled.empty()) {
    if (infinite) {
      current *= options.backoff_factor;
      goodSteps = 0;
    } else if (++goodSteps >= options.growth_interval) {
      current *= options.growth_factor;
      goodSteps = 0;
    }
  }
  forget();
}

void GradScaler::load_state(const State &state) {
  if (!isScale(state.scale) || state.good_steps < 0)
    throw UsageError("a GradScaler cannot go on with scale " + std::to_string(state.scale) + " and " +
                     std::to_string(state.good_steps) +
                     " good steps; load what state() returned, or make a new GradScaler");
  current = state.scale;
  goodSteps = state.good_steps;
  forget();
}

void GradScaler::forget() {
  unscaled.clear();
  stepped.clear();
  infinite = false;
}

} // namespace device_shim
