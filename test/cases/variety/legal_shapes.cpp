#include "../cases.h"
#include <torch/torch.h>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>
namespace nn = torch::nn;
using torch::Tensor;
using namespace torch::indexing;

// correct code only, plus its broken neighbours
void staging_ok() {
  auto pinned = torch::empty({4, 3});
  auto x = torch::randn({4, 3}, torch::kCUDA);
  pinned.copy_(x, true);
  x.index_put_({Slice(0, 2)}, torch::zeros({2, 3}));
  x[1] = torch::ones({3});
  x.index({2}) = torch::ones({3});
  x.slice(0, 0, 1).copy_(torch::ones({1, 3}));
  auto sorted = std::get<0>(x.cpu().sort());
  std::cout << sorted.sum().item<float>() << x.sum();
}
void staging_bad() {
  auto x = torch::randn({4, 3}, torch::kCUDA);
  auto buf = torch::empty({4, 3});
  buf.copy_(x, true);
  x.add_(buf); // [[device-mixed-op]]
}
void put_value_bad() {
  auto x = torch::zeros({4}, torch::kCUDA);
  x.index_put_({torch::tensor({0, 2})}, torch::ones({2})); // [[device-mixed-op]]
}
void put_value_ok() {
  auto x = torch::zeros({4}, torch::kCUDA);
  x.index_put_({torch::tensor({0, 2})}, torch::ones({2}, x.device()));
}
void sentinel_ok() {
  Tensor best = torch::zeros({1});
  bool have = false;
  for (int i = 0; i < 3; ++i) {
    auto s = torch::rand({1}, torch::kCUDA);
    if (!have) {
      best = s;
      have = true;
    } else {
      best = torch::max(best, s);
    }
  }
}
void undefined_ok() {
  Tensor acc;
  for (int i = 0; i < 3; ++i) {
    auto s = torch::rand({2}, torch::kCUDA);
    acc = acc.defined() ? acc + s : s;
  }
}
void first_iter_bad() {
  Tensor acc = torch::zeros({2});
  for (int i = 0; i < 3; ++i) {
    auto s = torch::rand({2}, torch::kCUDA);
    acc = acc + s; // [[device-mixed-op]]
  }
}
struct ScoresImpl : nn::Module {
  ScoresImpl() { fc = register_module("fc", nn::Linear(2, 2)); }
  Tensor forward(const Tensor& x) {
    history = fc(x).detach();
    return history * weights();
  }
  Tensor weights() const { return torch::ones({2}, fc->weight.options()); }
  nn::Linear fc{nullptr};
  Tensor history = torch::zeros({1, 2});
};
TORCH_MODULE(Scores);
void reassigned_member_ok() {
  Scores s;
  s->to(torch::kCUDA);
  auto y = s(torch::ones({1, 2}, torch::kCUDA));
  (void)(y + s->history);
}
void reassigned_member_bad() {
  Scores s;
  s->to(torch::kCUDA);
  auto y = s->fc(torch::ones({1, 2}, torch::kCUDA));
  (void)(y + torch::zeros({1, 2})); // [[device-mixed-op]]
}
// device chosen per branch, both tensors agree
static void worker(bool gpu, int rank) {
  torch::Device d = gpu ? torch::Device(torch::kCUDA, rank) : torch::Device(torch::kCPU);
  auto a = torch::ones({2}, d);
  Tensor b;
  if (gpu)
    b = torch::ones({2}, torch::Device(torch::kCUDA, rank));
  else
    b = torch::ones({2});
  (void)(a + b);
}
void per_branch_ok() {
  worker(true, 1);
  worker(false, 0);
}
static void workerBroken(bool gpu, int rank) {
  torch::Device d = gpu ? torch::Device(torch::kCUDA, rank) : torch::Device(torch::kCPU);
  auto a = torch::ones({2}, d);
  auto b = gpu ? torch::ones({2}, torch::Device(torch::kCUDA, 0)) : torch::ones({2});
  (void)(a + b); // [[device-mixed-op]]
}
void per_branch_bad() { workerBroken(true, 1); }
// round robin placement, explicit hops
void round_robin_ok() {
  const int n = 4;
  std::vector<nn::Linear> layers;
  std::vector<torch::Device> where;
  for (int i = 0; i < n; ++i) {
    where.emplace_back(torch::kCUDA, i % static_cast<int>(torch::cuda::device_count()));
    layers.emplace_back(2, 2);
    layers.back()->to(where.back());
  }
  auto h = torch::ones({1, 2});
  for (size_t i = 0; i < layers.size(); ++i) h = layers[i](h.to(where[i]));
  (void)h.cpu();
}
void round_robin_bad() {
  const int n = 4;
  std::vector<nn::Linear> layers;
  for (int i = 0; i < n; ++i) {
    layers.emplace_back(2, 2);
    layers.back()->to(torch::Device(torch::kCUDA, i));
  }
  auto h = torch::ones({1, 2});
  for (size_t i = 0; i < layers.size(); ++i) h = layers[i](h); // [[device-mixed-op]]
}
void map_range_ok() {
  std::vector<std::pair<torch::Device, Tensor>> shards;
  for (auto name : {"cuda:0", "cuda:1", "cpu"}) {
    torch::Device d{std::string(name)};
    shards.emplace_back(d, torch::ones({2}, d));
  }
  Tensor total = torch::zeros({2});
  for (auto& [d, t] : shards) {
    t.mul_(torch::full({2}, 2.0, d));
    total += t.to(total.device());
  }
}
void map_range_bad() {
  std::vector<std::pair<torch::Device, Tensor>> shards;
  for (auto name : {"cuda:0", "cuda:1"}) {
    torch::Device d{std::string(name)};
    shards.emplace_back(d, torch::ones({2}, d));
  }
  Tensor total = torch::zeros({2});
  for (auto& [d, t] : shards) total += t; // [[device-mixed-op]]
}
// unused broken result: early return keeps it safe
static Tensor maybeMask(const Tensor& x, const c10::optional<Tensor>& mask) {
  if (!mask.has_value() || !mask->defined()) return x;
  return x.masked_fill(*mask, 0.0); // [[device-mixed-op]]
}
void maybe_mask_ok() {
  auto x = torch::ones({3}, torch::kCUDA);
  maybeMask(x, c10::nullopt);
  maybeMask(x, Tensor());
  maybeMask(x, x > 0);
}
void maybe_mask_bad() {
  auto x = torch::ones({3}, torch::kCUDA);
  maybeMask(x, torch::zeros({3}, torch::kBool));
}

DT_MAIN(staging_ok, staging_bad, put_value_bad, put_value_ok, sentinel_ok, undefined_ok, first_iter_bad,
        reassigned_member_ok, reassigned_member_bad, per_branch_ok, per_branch_bad, round_robin_ok,
        round_robin_bad, map_range_ok, map_range_bad, maybe_mask_ok, maybe_mask_bad)
