#include "quant.h"

#include <torch/library.h>

#include <algorithm>

namespace quantops {

std::tuple<at::Tensor, at::Tensor> quantize_rows_cpu(const at::Tensor& x) {
  const auto scale = x.abs().amax(1).to(at::kFloat) / 127;
  return {(x / scale.unsqueeze(1)).round().to(at::kChar), scale};
}

at::Tensor dequantize_cpu(const at::Tensor& q, const at::Tensor& scale) {
  auto out = at::empty(q.sizes(), at::kFloat);
  const auto* from = q.data_ptr<int8_t>();
  const auto* factor = scale.data_ptr<float>();
  auto* to = out.data_ptr<float>();
  for (int64_t i = 0; i < q.numel(); ++i)
    to[i] = from[i] * factor[i / q.size(1)];
  return out;
}

// The permutation that sorts the groups by activation order.
at::Tensor group_order_cuda(const at::Tensor& hessian, int64_t group) {
  const auto diagonal = hessian.diagonal().contiguous();
  const auto groups = diagonal.view({-1, group}).sum(1);
  const float* energy = groups.data_ptr<float>();
  std::vector<int64_t> order(groups.numel());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(), [energy](int64_t a, int64_t b) { return energy[a] > energy[b]; }); // [[device-host-access]]
  return at::tensor(order, hessian.options().dtype(at::kLong));
}

at::Tensor group_order_cpu(const at::Tensor& hessian, int64_t group) {
  const auto energy = hessian.diagonal().reshape({-1, group}).sum(1);
  const auto values = energy.accessor<float, 1>();
  std::vector<int64_t> order(energy.numel());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&values](int64_t a, int64_t b) { return values[a] > values[b]; });
  return at::tensor(order, at::kLong);
}

at::Tensor clip_cuda(const at::Tensor& w, double ratio) {
  const auto limit = w.abs().amax(1, true) * at::scalar_tensor(ratio);
  return at::minimum(at::maximum(w, -limit), limit);
}

} // namespace quantops

TORCH_LIBRARY(quantops, m) {
  m.def("quantize_rows(Tensor x) -> (Tensor, Tensor)");
  m.def("dequantize(Tensor q, Tensor scale) -> Tensor");
  m.def("group_order(Tensor hessian, int group) -> Tensor");
  m.def("clip(Tensor w, float ratio) -> Tensor");
}

TORCH_LIBRARY_IMPL(quantops, CPU, m) {
  m.impl("quantize_rows", &quantops::quantize_rows_cpu);
  m.impl("dequantize", &quantops::dequantize_cpu);
  m.impl("group_order", &quantops::group_order_cpu);
}

TORCH_LIBRARY_IMPL(quantops, CUDA, m) {
  m.impl("quantize_rows", &quantops::quantize_rows_cuda);
  m.impl("dequantize", &quantops::dequantize_cuda);
  m.impl("group_order", &quantops::group_order_cuda);
  m.impl("clip", &quantops::clip_cuda);
}

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace quantops;
static torch::Tensor chars(int i = 1) { return torch::zeros({4, 6}, torch::dtype(torch::kChar).device(dtl::dev(i))); }
using T = const at::Tensor&;
static at::Tensor order(T h) { return c10::Dispatcher::singleton().findSchemaOrThrow("quantops::group_order", "").typed<at::Tensor(T, int64_t)>().call(h, 2); }
static at::Tensor dequant(T q, T s) { return c10::Dispatcher::singleton().findSchemaOrThrow("quantops::dequantize", "").typed<at::Tensor(T, T)>().call(q, s); }
static void dequant_bad() { dequant(chars(), dtl::gpu({4})); }
static void gemm_bad() { scaled_gemm_cuda(dtl::gpu({4, 6}), dtl::gpu({6, 3}), 1); }
static void outlier_bad() { outlier_columns_cuda(dtl::gpu({4, 6}), 6); }
static void fake_bad() { auto x = dtl::gpu({4, 6}); fake_quant_inplace_cuda(x, dtl::gpu({1})); }
static void histogram_bad() {
  Calibrator c;
  c.attach("fc", std::make_unique<HistogramObserver>(16));
  c.feed("fc", dtl::gpu({4, 6}));
}
static void percentile_bad() {
  Calibrator c;
  c.attach("fc", std::make_unique<PercentileObserver>(0.99));
  c.feed("fc", dtl::gpu({4, 6}));
  c.quantize("fc", dtl::gpu({4, 6}));
}
static void bias_bad() { QuantLinear l(torch::rand({3, 6}), torch::rand({3})); l.to(dtl::dev(1)); l.forward(torch::rand({2, 6})); }
static void order_bad() { order(dtl::gpu({8, 8})); }
static void cpu_ok() {
  order(torch::rand({8, 8}));
  auto [q, s] = quantize_rows_cpu(torch::rand({4, 6}));
  dequant(q, s);
}
static void cuda_ok() {
  auto [q, s] = quantize_rows_cuda(dtl::gpu({4, 6}));
  nf4_lookup_cuda(torch::zeros({4}, torch::dtype(torch::kByte).device(dtl::dev(1))));
  clip_cuda(dtl::gpu({4, 6}), 0.9);
}
static void w4_ok() { w4_matmul_cuda(dtl::gpu({4, 6}), dtl::ints({3, 6}), dtl::gpu({3}), {}); }
static void smooth_ok() { smooth_cuda(dtl::gpu({4, 6}), torch::rand({6})); stochastic_round_cuda(dtl::gpu({4, 6}), 3); }
static void observers_ok() {
  Calibrator c;
  c.attach("a", std::make_unique<MinMaxObserver>());
  c.attach("b", std::make_unique<PercentileObserver>(0.99));
  for (auto n : {"a", "b"}) {
    c.feed(n, dtl::gpu({4, 6}));
    c.feed(n, dtl::gpu({4, 6}, 2));
  }
  c.quantize("a", dtl::gpu({4, 6}));
  c.report();
}
static void linear_ok() {
  QuantLinear l(torch::rand({3, 6}), torch::rand({3})), plain(torch::rand({3, 6}), {});
  l.to(dtl::dev(1));
  plain.to(dtl::dev(1));
  l.forward_reference(torch::rand({2, 6}));
  l.error(torch::rand({2, 6}));
  plain.forward(torch::rand({2, 6}));
}
DT_MAIN(dequant_bad, gemm_bad, outlier_bad, fake_bad, histogram_bad, percentile_bad, bias_bad, order_bad, cpu_ok, cuda_ok, w4_ok,
        smooth_ok, observers_ok, linear_ok)
#endif
