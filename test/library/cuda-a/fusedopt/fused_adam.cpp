#include "fused.h"

#include <ATen/cuda/CUDAContext.h>

#include <cmath>

namespace fusedopt {

FusedAdam::FusedAdam(TensorList params, AdamOptions options) : options_(options) {
  TORCH_CHECK(!params.empty(), "optimizer got an empty parameter list");
  for (auto &param : params) {
    TORCH_CHECK(param.is_cuda(), "FusedAdam: parameters must be on GPUs, got one on ", param.device());
    Group &group = groups_[param.get_device()];
    group.params.push_back(param);
    group.exp_avg.push_back(torch::zeros_like(param));
    group.exp_avg_sq.push_back(torch::zeros_like(param));
    if (!group.found_inf.defined())
      group.found_inf = torch::zeros({1}, param.options().dtype(torch::kFloat));
  }
}

void FusedAdam::step() {
  const torch::NoGradGuard no_grad;
  ++step_;
  for (auto &[index, group] : groups_) {
    for (size_t i = 0; i < group.params.size(); ++i) {
      const auto &grad = group.params[i].grad();
      if (!grad.defined())
        continue;
      fused_adam(group.params[i].detach(), grad.contiguous(), group.exp_avg[i], group.exp_avg_sq[i], options_.lr, step_);
    }
  }
}

void FusedAdam::unscale(double scale) {
  const torch::NoGradGuard no_grad;
  for (auto &[index, group] : groups_) {
    for (auto &param : group.params) {
      if (!param.grad().defined())
        continue;
      param.mutable_grad().mul_(1.0 / scale);
      group.found_inf.add_(torch::isfinite(param.grad()).logical_not().any().to(torch::kFloat));
    }
  }
}

bool FusedAdam::overflowed() const {
  for (const auto &[index, group] : groups_)
    if (*group.found_inf.data_ptr<float>() > 0) // [[device-host-access]]
      return true;
  return false;
}

bool FusedAdam::check_overflow() const {
  for (const auto &[index, group] : groups_)
    if (group.found_inf.item<float>() > 0)
      return true;
  return false;
}

at::Tensor FusedAdam::total_norm() const {
  auto total = torch::zeros({1}, torch::kFloat);
  for (const auto &[index, group] : groups_)
    for (const auto &param : group.params)
      if (param.grad().defined())
        total += param.grad().norm().pow(2).reshape({1}); // [[device-mixed-op]]
  return total.sqrt();
}

at::Tensor FusedAdam::total_norm_per_device() const {
  auto total = torch::zeros({1}, torch::kFloat);
  for (const auto &[index, group] : groups_) {
    auto local = torch::zeros({1}, group.found_inf.options());
    for (const auto &param : group.params)
      if (param.grad().defined())
        local += param.grad().norm().pow(2).reshape({1});
    total += local.cpu();
  }
  return total.sqrt();
}

std::vector<double> FusedAdam::learning_rates() const {
  return std::vector<double>(groups_.size(), options_.lr);
}

void FusedAdam::load_moments(const std::vector<std::vector<float>> &first) {
  size_t next = 0;
  for (auto &[index, group] : groups_)
    for (auto &moment : group.exp_avg) {
      TORCH_CHECK(next < first.size(), "checkpoint has ", first.size(), " moments only");
      const auto &saved = first[next++];
      TORCH_CHECK(static_cast<int64_t>(saved.size()) == moment.numel());
      moment.copy_(torch::from_blob(const_cast<float *>(saved.data()), moment.sizes(), torch::kFloat));
    }
}

} // namespace fusedopt

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace fusedopt;
using dtl::gpu;
FusedAdam adam() {
  TensorList p;
  for (int i = 0; i < 3; ++i) { p.push_back(gpu({4}, i).requires_grad_()); p.back().mutable_grad() = gpu({4}, i); }
  return FusedAdam(p, {});
}
void scale_ok() { multi_tensor_scale(dtl::ints({1}), {gpu({4}), gpu({3})}, {gpu({4}), gpu({3})}, .5); }
void axpby_ok() { multi_tensor_axpby(dtl::ints({1}), {gpu({4})}, {gpu({4})}, {gpu({4})}, 1, 2); }
void l2norm_bad() { multi_tensor_l2norm({gpu({4}), gpu({3})}); }
void maxnorm_bad() { multi_tensor_maxnorm({gpu({4}), gpu({3})}); }
void sgd_ok() { fused_sgd(gpu({4}), gpu({4}), gpu({4}), .1, 0); }
void sgd_capturable_bad() { fused_sgd_capturable(gpu({4}), gpu({4}), gpu({4}), torch::full({1}, .1)); }
void fused_adam_ok() { fused_adam(gpu({4}), gpu({4}), gpu({4}), gpu({4}), .1, 2); }
void amsgrad_bad() { fused_adam_amsgrad(gpu({4}), gpu({4}), gpu({4}), gpu({4}), .1, 2); }
void cast_copy_ok() { cast_copy(gpu({4})); cast_copy(torch::rand({4})); }
void step_ok() { auto a = adam(); a.step(); a.step(); }
void unscale_ok() { auto a = adam(); a.unscale(2); dtl::require(!a.check_overflow(), "inf"); a.learning_rates(); }
void overflowed_bad() { adam().overflowed(); }
void total_norm_bad() { adam().total_norm(); }
void total_norm_per_device_ok() { adam().total_norm_per_device(); }
void load_moments_ok() { auto a = adam(); a.load_moments({{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}); }
} // namespace
DT_MAIN(scale_ok, axpby_ok, l2norm_bad, maxnorm_bad, sgd_ok, sgd_capturable_bad, fused_adam_ok, amsgrad_bad, cast_copy_ok,
        step_ok, unscale_ok, overflowed_bad, total_norm_bad, total_norm_per_device_ok, load_moments_ok)
#endif
