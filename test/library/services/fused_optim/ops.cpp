#include "ops.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>

namespace fused {

namespace {

const at::Tensor& nf4_table() {
  static const at::Tensor table = at::tensor({-1.0f, -0.6962f, -0.5251f, -0.3949f, -0.2844f, -0.1848f, -0.0911f, 0.0f,
                                              0.0796f, 0.1609f, 0.2461f, 0.3379f, 0.4407f, 0.5626f, 0.7230f, 1.0f});
  return table;
}

} // namespace

at::Tensor nf4_codes(const at::Tensor& normalised) {
  TORCH_CHECK(normalised.is_cuda(), "weights are quantised where they are");
  const auto& table = nf4_table();
  const auto middle = (table.slice(0, 1) + table.slice(0, 0, -1)) / 2;
  return at::bucketize(normalised, middle).to(at::kByte); // [[device-mixed-op]]
}

at::Tensor nf4_values(const at::Tensor& codes) {
  static std::map<int, at::Tensor> tables;
  auto& table = tables[codes.is_cuda() ? codes.get_device() : -1];
  if (!table.defined())
    table = nf4_table().to(codes.device());
  return table.index({codes.to(at::kLong)});
}

at::Tensor smooth_scales(const at::Tensor& activations, const at::Tensor& weight, double alpha) {
  // Calibration data are collected in host memory.
  const auto a = activations.abs().amax(0).cpu(), w = weight.abs().amax(0).cpu();
  return (a.pow(alpha) / w.pow(1 - alpha)).clamp_min(1e-5).to(weight.device());
}

LossScaler::LossScaler(double initial, double growth, double backoff, int64_t interval)
    : scale_(at::full({1}, initial, at::kFloat)), growth_(growth), backoff_(backoff), interval_(interval) {}

at::Tensor LossScaler::scale(const at::Tensor& loss) const { return loss * scale_.squeeze(0); }

std::vector<at::Tensor> LossScaler::scale_all(const std::vector<at::Tensor>& losses) const {
  const auto stacked = at::stack(losses).to(at::kCUDA);
  const auto scaled = at::mul(stacked, scale_); // [[device-mixed-op]]
  return scaled.unbind();
}

void LossScaler::unscale(const std::vector<at::Tensor>& grads) const {
  const auto inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  for (const auto& grad : grads)
    grad.mul_(inverse.to(grad.device(), grad.scalar_type()));
}

bool LossScaler::overflowed(const std::vector<at::Tensor>& grads) const {
  TORCH_CHECK(!grads.empty() && grads.front().is_cuda());
  auto found = at::zeros({1}, grads.front().options().dtype(at::kFloat));
  for (const auto& grad : grads)
    found += grad.to(found.device()).isfinite().all().logical_not();
  const float* flag = found.data_ptr<float>();
  return *flag != 0; // [[device-host-access]]
}

bool LossScaler::overflowed_any(const std::vector<at::Tensor>& grads) const {
  auto found = at::zeros({1}, at::kInt);
  auto count = found.accessor<int, 1>();
  for (const auto& grad : grads)
    count[0] += grad.isfinite().all().item<bool>() ? 0 : 1;
  return found.is_nonzero();
}

void LossScaler::update(bool overflow) {
  if (overflow) {
    scale_.mul_(backoff_);
    good_ = 0;
  } else if (++good_ % interval_ == 0) {
    scale_.mul_(growth_);
  }
}

OffloadAdam::OffloadAdam(std::vector<at::Tensor> params, double lr) : params_(std::move(params)), lr_(lr) {
  for (const auto& p : params_) {
    master_.push_back(p.detach().to(at::kCPU, at::kFloat));
    for (auto* list : {&grad_, &exp_avg_, &exp_avg_sq_})
      list->push_back(at::zeros(p.sizes(), at::kFloat));
  }
}

void OffloadAdam::receive(size_t i, const at::Tensor& grad) { grad_.at(i).copy_(grad); }

void OffloadAdam::receive_overlapped(size_t i, const at::Tensor& grad) {
  const auto copies = c10::cuda::getStreamFromPool(false, grad.get_device());
  {
    const c10::cuda::CUDAStreamGuard guard(copies);
    grad_.at(i).copy_(grad, /*non_blocking=*/true);
  }
  grad_.at(i).record_stream(copies.unwrap()); // [[device-kernel-launch]]
}

void OffloadAdam::step() {
  ++steps_;
  for (size_t t = 0; t < master_.size(); ++t) {
    TORCH_CHECK(master_[t].is_cpu() && grad_[t].is_cpu());
    float *p = master_[t].data_ptr<float>(), *g = grad_[t].data_ptr<float>();
    float *m = exp_avg_[t].data_ptr<float>(), *v = exp_avg_sq_[t].data_ptr<float>();
    for (int64_t i = 0; i < master_[t].numel(); ++i) {
      m[i] = 0.9f * m[i] + 0.1f * g[i];
      v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
      p[i] -= static_cast<float>(lr_) * m[i] / (std::sqrt(v[i]) + 1e-8f);
    }
  }
}

void OffloadAdam::publish() {
  at::NoGradGuard no_grad;
  for (size_t t = 0; t < params_.size(); ++t)
    params_[t].copy_(master_[t]);
}

void OffloadAdam::publish_half(std::vector<at::Tensor>& out) {
  out.clear();
  for (size_t t = 0; t < params_.size(); ++t) {
    auto value = master_[t].to(params_[t].device());
    value.to(at::kHalf); // [[device-discarded-move]]
    out.push_back(value);
  }
}

} // namespace fused

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace fused;
static std::vector<std::vector<at::Tensor>> lists(int depth, int i = 1) {
  std::vector<std::vector<at::Tensor>> all(depth);
  for (auto &l : all)
    for (int t = 0; t < 3; ++t)
      l.push_back(dtl::gpu({5 + t}, i));
  return all;
}
static at::Tensor noop(int i = 1) { return dtl::ints({1}, i); }
static void norm_bad() { multi_tensor_l2norm(4, noop(), lists(1)); }
static void adagrad_bad() { fused_adagrad(lists(3), 0.1, 1e-8); }
static void absmax_bad() { group_absmax(dtl::gpu({8}), 4); }
static void scales_ok() { int8_scales(dtl::gpu({4, 3})); }
static void codes_bad() { nf4_codes(dtl::gpu({8})); }
static void scale_bad() { LossScaler().scale_all({dtl::gpu({}, 0), dtl::gpu({}, 0)}); }
static void overflow_bad() { LossScaler().overflowed({dtl::gpu({3})}); }
static void overlapped_bad() { OffloadAdam({dtl::gpu({3})}, 0.1).receive_overlapped(0, dtl::gpu({3})); }
static void half_discarded_bad() {
  std::vector<at::Tensor> out;
  OffloadAdam({dtl::gpu({3})}, 0.1).publish_half(out);
  dtl::require(out[0].scalar_type() == at::kHalf, "half");
}
static void adam_ok() { multi_tensor_adam(4, noop(), lists(4), 0.1, 0.9, 0.99, 1e-8, 1); multi_tensor_scale(4, noop(), lists(2), 0.5); }
static void sgd_ok() { fused_sgd({dtl::gpu({4}, 1), dtl::gpu({4}, 2)}, {dtl::gpu({4}, 1), dtl::gpu({4}, 2)}, 0.1); }
static void quantize_ok() { auto c = quantize_groups(dtl::gpu({8}), torch::ones({2}), 4); dequantize_groups(c, dtl::gpu({2}), 4); }
static void statistics_ok() { at::Tensor m; write_statistics(dtl::gpu({4, 3}), m); }
static void values_ok() { nf4_values(dtl::ints({4})); nf4_values(dtl::ints({4}, 2)); smooth_scales(torch::rand({4, 3}), dtl::gpu({2, 3}), 0.5); }
static void scaler_ok() {
  LossScaler s;
  s.scale(dtl::gpu({4}));
  s.unscale({dtl::gpu({3}), dtl::gpu({2}, 2)});
  s.update(s.overflowed_any({dtl::gpu({3})}));
}
static void offload_ok() { OffloadAdam a({dtl::gpu({3})}, 0.1); a.receive(0, dtl::gpu({3})); a.step(); a.publish(); }
DT_MAIN(norm_bad, adagrad_bad, absmax_bad, scales_ok, codes_bad, scale_bad, overflow_bad, overlapped_bad,
        half_discarded_bad, adam_ok, sgd_ok, quantize_ok, statistics_ok, values_ok, scaler_ok, offload_ok)
#endif
