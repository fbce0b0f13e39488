// insert and emplace in front of what is there.
#include "../cases.h"

#include <torch/torch.h>
#include <vector>

namespace {

std::vector<torch::Tensor> emplacedInFront() {
  std::vector<torch::Tensor> all;
  all.push_back(torch::ones({3}));
  all.emplace(all.begin(), torch::ones({3}, torch::kCUDA));
  return all;
}

std::vector<torch::Tensor> insertedInFront() {
  std::vector<torch::Tensor> all{torch::ones({3})};
  all.insert(all.begin(), torch::ones({3}, torch::kCUDA));
  return all;
}

void emplace_front_ok() {
  auto all = emplacedInFront();
  auto a = all[0] + torch::ones({3}, torch::kCUDA);
  auto b = all[1] + torch::ones({3});
}

void emplace_front_bad() {
  auto all = emplacedInFront();
  auto a = all[1] + torch::ones({3}, torch::kCUDA); // [[device-mixed-op]]
}

void insert_front_ok() {
  auto all = insertedInFront();
  auto a = all.front() + torch::ones({3}, torch::kCUDA);
  auto b = all.back() + torch::ones({3});
}

void insert_front_bad() {
  auto all = insertedInFront();
  auto a = all.back() + torch::ones({3}, torch::kCUDA); // [[device-mixed-op]]
}

} // namespace

DT_MAIN(emplace_front_ok, emplace_front_bad, insert_front_ok, insert_front_bad)
