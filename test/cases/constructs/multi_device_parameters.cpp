#include "../cases.h"

#include <torch/torch.h>
struct Q : torch::nn::Module {
  explicit Q(const std::vector<torch::Device>& ds) {
    int i = 0;
    for (auto& d : ds) { auto l = register_module("s" + std::to_string(i++), torch::nn::Linear(4, 4)); l->to(d); }
  }
};
struct R : torch::nn::Module {
  R() {
    for (int i = 0; i < 2; ++i) { auto l = register_module("s" + std::to_string(i), torch::nn::Linear(4, 4)); l->to(torch::Device(torch::kCUDA, i)); }
  }
};
void a_bad() {
  Q p({{torch::kCUDA, 0}, {torch::kCUDA, 1}});
  std::vector<torch::Tensor> n;
  for (auto& w : p.parameters()) n.push_back(w.norm());
  auto s = torch::stack(n); // [[device-mixed-op]]
}
void b_bad() {
  std::vector<torch::Device> ds{torch::Device(torch::kCUDA, 0), torch::Device(torch::kCUDA, 1)};
  std::vector<torch::Tensor> n;
  for (auto& d : ds) n.push_back(torch::ones({}, d));
  auto s = torch::stack(n); // [[device-mixed-op]]
}
void c_bad() {
  R p;
  for (auto& w : p.parameters()) w.mutable_grad() = torch::ones_like(w);
  torch::nn::utils::clip_grad_norm_(p.parameters(), 1.0); // [[device-mixed-op]]
}
void d_bad() {
  std::vector<torch::nn::Linear> v;
  for (int i = 0; i < 2; ++i) { v.emplace_back(4, 4); v.back()->to(torch::Device(torch::kCUDA, i)); }
  auto s = v[0]->weight + v[1]->weight; // [[device-mixed-op]]
}

DT_MAIN(a_bad, b_bad, c_bad, d_bad)
