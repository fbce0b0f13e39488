// Tensors that are given other data, statistics of a transform, the two halves of a sparse tensor.
#include "../cases.h"

#include <torch/torch.h>

namespace {

void set_data_bad() {
  auto x = torch::rand({3}, torch::kCUDA), y = x.clone();
  y.set_data(torch::rand({3}));
  auto sum = x + y; // [[device-mixed-op]]
}
void set_data_ok() {
  auto x = torch::rand({3}, torch::kCUDA), y = torch::rand({3});
  y.set_data(torch::rand({3}, torch::kCUDA));
  auto sum = x + y;
}

// The statistics are CPU tensors, whatever is normalised.
void normalize_bad() {
  auto image = torch::rand({3, 8, 8}).to(torch::kCUDA);
  torch::data::transforms::Normalize<> normalize({0.5, 0.5, 0.5}, {0.2, 0.2, 0.2});
  auto result = normalize(image); // [[device-mixed-op]]
}
void normalize_before_move_ok() {
  torch::data::transforms::Normalize<> normalize(0.5, 0.2);
  auto result = normalize(torch::rand({3, 8, 8})).to(torch::kCUDA) + torch::ones({3, 8, 8}, torch::kCUDA);
}
void normalize_moved_ok() {
  torch::data::transforms::Normalize<> normalize({0.5, 0.5, 0.5}, {0.2, 0.2, 0.2});
  normalize.mean = normalize.mean.to(torch::kCUDA);
  normalize.stddev = normalize.stddev.to(torch::kCUDA);
  auto result = normalize(torch::rand({3, 8, 8}, torch::kCUDA));
}

void sparse_bad() {
  auto values = torch::rand({3}, torch::kCUDA);
  auto matrix = torch::sparse_coo_tensor(torch::zeros({1, 3}, torch::kLong), values, {3}); // [[device-mixed-op]]
}
void sparse_ok() {
  auto matrix = torch::sparse_coo_tensor(torch::zeros({1, 3}, torch::kLong), torch::rand({3}), {3});
}

} // namespace

DT_MAIN(set_data_bad, set_data_ok, normalize_bad, normalize_before_move_ok, normalize_moved_ok, sparse_bad, sparse_ok)
