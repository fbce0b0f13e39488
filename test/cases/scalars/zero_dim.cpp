// Zero-dimensional CPU tensors mix into binary operations, and into nothing else.
#include <torch/torch.h>

#include <vector>

#include "../cases.h"

void zero_dim_factor_ok() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto temperature = torch::tensor(0.7);
  auto y = x / temperature + torch::scalar_tensor(1.0) - torch::ones({});
  TORCH_CHECK(y.is_cuda());
}

void one_element_factor_bad() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto temperature = torch::tensor({0.7});
  auto y = x / temperature; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void reduction_is_zero_dim_ok() {
  auto host = torch::rand({10});
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = (x - host.mean()) / host.std();
  TORCH_CHECK(y.is_cuda());
}

void reduction_over_a_dimension_bad() {
  auto host = torch::rand({10, 3});
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = x - host.mean(0); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void reduction_keeping_dimensions_bad() {
  auto host = torch::rand({10});
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = x - host.mean(0, /*keepdim=*/true); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void cuda_scalar_scales_cpu_vector_bad() {
  auto grad = torch::rand({5});
  auto norm = torch::rand({5}, torch::kCUDA).norm();
  grad.mul_(1.0 / norm); // [[device-mixed-op]]
}

void cuda_scalar_as_number_ok() {
  auto grad = torch::rand({5});
  auto norm = torch::rand({5}, torch::kCUDA).norm();
  grad.mul_(1.0 / norm.item<double>());
}

void cuda_scalar_brought_to_the_vector_ok() {
  auto grad = torch::rand({5});
  auto norm = torch::rand({5}, torch::kCUDA).norm();
  grad.mul_((1.0 / norm).to(grad.device()));
}

void host_total_updated_in_place_bad() {
  auto total = torch::zeros({});
  auto loss = torch::rand({4}, torch::kCUDA).mean();
  total += loss; // [[device-mixed-op]]
}

void host_total_rebound_ok() {
  auto total = torch::zeros({});
  auto loss = torch::rand({4}, torch::kCUDA).mean();
  total = total + loss;
  TORCH_CHECK(total.is_cuda());
}

void loss_terms_on_two_gpus_bad() {
  auto nll = torch::rand({4}, torch::Device(torch::kCUDA, 0)).mean();
  auto kl = torch::rand({4}, torch::Device(torch::kCUDA, 1)).mean();
  auto loss = nll + kl; // [[device-mixed-op]]
  TORCH_CHECK(loss.defined());
}

void loss_terms_gathered_ok() {
  auto nll = torch::rand({4}, torch::Device(torch::kCUDA, 0)).mean();
  auto kl = torch::rand({4}, torch::Device(torch::kCUDA, 1)).mean();
  auto loss = nll + kl.to(nll.device());
  TORCH_CHECK(loss.defined());
}

void ternary_op_takes_no_cpu_scalar_bad() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto step = torch::tensor(0.1f);
  auto y = torch::addcmul(x, x, step); // [[device-mixed-op if torch<2.7]]
  TORCH_CHECK(y.defined());
}

void weight_of_lerp_bad() {
  auto x = torch::rand({3}, torch::kCUDA), y = torch::rand({3}, torch::kCUDA);
  auto z = torch::lerp(x, y, torch::tensor(0.1f)); // [[device-mixed-op if torch<2]]
  TORCH_CHECK(z.defined());
}

void end_of_lerp_bad() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = torch::lerp(x, torch::tensor(1.0f), 0.5); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void squared_error_takes_no_cpu_scalar_bad() {
  auto mean = torch::rand({3}, torch::kCUDA).mean();
  auto loss = torch::mse_loss(mean, torch::tensor(0.5f)); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void absolute_error_takes_a_cpu_scalar_ok() {
  auto mean = torch::rand({3}, torch::kCUDA).mean();
  auto loss = torch::l1_loss(mean, torch::tensor(0.5f));
  TORCH_CHECK(loss.defined());
}

void stacked_scalars_bad() {
  std::vector<torch::Tensor> norms{torch::rand({3}, torch::kCUDA).norm(), torch::rand({3}).norm()};
  auto total = torch::stack(norms).norm(); // [[device-mixed-op]]
  TORCH_CHECK(total.defined());
}

void comparison_with_threshold_ok() {
  auto scores = torch::rand({8}, torch::kCUDA);
  auto threshold = torch::rand({8}).max();
  auto above = scores.ge(threshold).sum().item<int64_t>();
  scores.fill_(threshold);
  scores = torch::maximum(scores, torch::tensor(0.5f));
  TORCH_CHECK(above >= 0);
}

DT_MAIN(weight_of_lerp_bad, end_of_lerp_bad, squared_error_takes_no_cpu_scalar_bad,
        absolute_error_takes_a_cpu_scalar_ok, zero_dim_factor_ok, one_element_factor_bad,
        reduction_is_zero_dim_ok, reduction_over_a_dimension_bad, reduction_keeping_dimensions_bad,
        cuda_scalar_scales_cpu_vector_bad, cuda_scalar_as_number_ok, cuda_scalar_brought_to_the_vector_ok,
        host_total_updated_in_place_bad, host_total_rebound_ok, loss_terms_on_two_gpus_bad,
        loss_terms_gathered_ok, ternary_op_takes_no_cpu_scalar_bad, stacked_scalars_bad,
        comparison_with_threshold_ok)
