// One function per family of operations: where, clamp, lerp, cat, matmul, convolution, embedding, norms.
#include <torch/torch.h>

#include <vector>

#include "../cases.h"

namespace F = torch::nn::functional;

namespace families {

void where_other_on_host_bad() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto y = torch::where(x > 0, x, torch::zeros({4})); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void where_all_on_device_ok() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto y = torch::where(x > 0, x, torch::zeros_like(x));
  auto z = torch::where(x > 0, x, 0.0);
  TORCH_CHECK(y.defined() && z.defined());
}

// The condition is computed from the wrong tensor.
void where_condition_on_host_bad() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto reference = x.to(torch::kCPU);
  auto y = torch::where(reference.gt(0), x, x * 0.1); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void clamp_by_host_bounds_bad() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto low = torch::full({4}, -1.0);
  auto y = torch::clamp(x, low); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void clamp_by_numbers_ok() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto y = x.clamp(-1, 1).clamp_min(torch::full({4}, -0.5, x.options()));
  TORCH_CHECK(y.is_cuda());
}

void lerp_end_on_host_bad() {
  auto a = torch::zeros({4}, torch::kCUDA), b = torch::ones({4});
  auto mid = torch::lerp(a, b, 0.5); // [[device-mixed-op]]
  TORCH_CHECK(mid.defined());
}

void lerp_on_device_ok() {
  auto a = torch::zeros({4}, torch::kCUDA), b = torch::ones({4}, torch::kCUDA);
  auto mid = a.lerp(b, 0.5);
  TORCH_CHECK(mid.defined());
}

void cat_class_token_bad() {
  auto patches = torch::rand({2, 9, 8}, torch::kCUDA);
  auto cls = torch::zeros({2, 1, 8});
  auto tokens = torch::cat({cls, patches}, 1); // [[device-mixed-op]]
  TORCH_CHECK(tokens.defined());
}

void cat_class_token_ok() {
  auto patches = torch::rand({2, 9, 8}, torch::kCUDA);
  auto cls = torch::zeros({2, 1, 8}, patches.options());
  auto tokens = torch::cat({cls, patches}, 1);
  TORCH_CHECK(tokens.defined());
}

void conv_kernel_on_host_bad() {
  auto image = torch::rand({1, 1, 6, 6}, torch::kCUDA);
  auto sobel = torch::tensor({1.f, 0.f, -1.f, 2.f, 0.f, -2.f, 1.f, 0.f, -1.f}).view({1, 1, 3, 3});
  auto edges = F::conv2d(image, sobel); // [[device-mixed-op]]
  TORCH_CHECK(edges.defined());
}

void conv_kernel_on_device_ok() {
  auto image = torch::rand({1, 1, 6, 6}, torch::kCUDA);
  auto sobel = torch::tensor({1.f, 0.f, -1.f, 2.f, 0.f, -2.f, 1.f, 0.f, -1.f}).view({1, 1, 3, 3});
  sobel = sobel.to(image.device());
  auto edges = F::conv2d(image, sobel);
  TORCH_CHECK(edges.defined());
}

void functional_embedding_weight_bad() {
  auto weight = torch::rand({10, 4});
  auto ids = torch::randint(10, {3}, torch::dtype(torch::kLong).device(torch::kCUDA));
  auto e = F::embedding(ids, weight); // [[device-mixed-op]]
  TORCH_CHECK(e.defined());
}

void functional_linear_weight_ok() {
  auto weight = torch::rand({10, 4}, torch::kCUDA);
  auto bias = torch::rand({10}, torch::kCUDA);
  auto y = F::linear(torch::rand({3, 4}, torch::kCUDA), weight, bias);
  TORCH_CHECK(y.is_cuda());
}

void functional_linear_bias_bad() {
  auto weight = torch::rand({10, 4}, torch::kCUDA);
  auto bias = torch::rand({10});
  auto y = F::linear(torch::rand({3, 4}, torch::kCUDA), weight, bias); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void bmm_and_einsum_bad() {
  auto q = torch::rand({2, 3, 4}, torch::kCUDA);
  auto k = torch::rand({2, 4, 5});
  auto scores = torch::bmm(q, k); // [[device-mixed-op]]
  TORCH_CHECK(scores.defined());
}

void layer_norm_weight_ok() {
  auto x = torch::rand({2, 4}, torch::kCUDA);
  auto y = F::layer_norm(x, F::LayerNormFuncOptions({4}).weight(torch::ones({4}, x.options())));
  TORCH_CHECK(y.is_cuda());
}

void layer_norm_weight_bad() {
  auto x = torch::rand({2, 4}, torch::kCUDA);
  auto y = F::layer_norm(x, F::LayerNormFuncOptions({4}).weight(torch::ones({4}))); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void cosine_similarity_bad() {
  auto a = torch::rand({3, 4}, torch::kCUDA), b = torch::rand({3, 4});
  auto s = F::cosine_similarity(a, b, F::CosineSimilarityFuncOptions().dim(1)); // [[device-mixed-op]]
  TORCH_CHECK(s.defined());
}

void equal_across_devices_bad() {
  auto a = torch::rand({3}, torch::kCUDA);
  const bool same = torch::equal(a, a.cpu()); // [[device-mixed-op]]
  TORCH_CHECK(same);
}

void allclose_after_transfer_ok() {
  auto a = torch::rand({3}, torch::kCUDA);
  const auto back = a.cpu();
  TORCH_CHECK(torch::allclose(a.cpu(), back));
}

} // namespace families

using namespace families;
DT_MAIN(where_other_on_host_bad, where_all_on_device_ok, where_condition_on_host_bad,
        clamp_by_host_bounds_bad, clamp_by_numbers_ok, lerp_end_on_host_bad, lerp_on_device_ok,
        cat_class_token_bad, cat_class_token_ok, conv_kernel_on_host_bad, conv_kernel_on_device_ok,
        functional_embedding_weight_bad, functional_linear_weight_ok, functional_linear_bias_bad,
        bmm_and_einsum_bad, layer_norm_weight_ok, layer_norm_weight_bad, cosine_similarity_bad,
        equal_across_devices_bad, allclose_after_transfer_ok)
