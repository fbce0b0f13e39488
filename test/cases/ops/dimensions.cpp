// How many dimensions results have: CPU tensors of no dimension may meet tensors on a GPU.
#include "../cases.h"

#include <torch/torch.h>

namespace {

torch::Tensor on_gpu() { return torch::rand({3, 4}, torch::kCUDA); }

void expanded_bad() {
  auto row = torch::rand({4});
  auto rows = row.expand({3, 4});
  if (rows.dim() == 2)
    auto sum = rows + on_gpu(); // [[device-mixed-op]]
}
void expanded_ok() {
  auto rows = torch::rand({4}).expand({3, 4});
  if (rows.dim() == 1)
    auto sum = rows + on_gpu();
}

void shaped_like_other_bad() {
  auto flat = torch::rand({12});
  auto rows = flat.view_as(torch::rand({3, 4}));
  if (rows.dim() == 2)
    auto sum = rows + on_gpu(); // [[device-mixed-op]]
}
void shaped_like_scalar_ok() {
  auto scalar = torch::rand({1}).view_as(torch::tensor(1.0));
  auto sum = scalar + on_gpu();
}

void reduced_over_list_bad() {
  auto mean = torch::rand({3, 4}).mean({0});
  auto sum = mean + on_gpu(); // [[device-mixed-op]]
}
void reduced_over_all_ok() {
  auto mean = torch::rand({3, 4}).mean(at::OptionalIntArrayRef(c10::nullopt));
  auto sum = mean + on_gpu();
}

void like_scalar_ok() {
  auto scalar = torch::zeros_like(torch::tensor(1.0, torch::kCUDA), torch::kCPU);
  auto sum = scalar + on_gpu();
}

} // namespace

DT_MAIN(expanded_bad, expanded_ok, shaped_like_other_bad, shaped_like_scalar_ok, reduced_over_list_bad,
        reduced_over_all_ok, like_scalar_ok)
