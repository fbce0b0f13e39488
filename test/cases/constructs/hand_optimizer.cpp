#include "../cases.h"

#include <torch/torch.h>
struct Opt {
  explicit Opt(std::vector<torch::Tensor> p) : params(std::move(p)), m(params.size()) {}
  void lazy() {
    for (size_t i = 0; i < params.size(); ++i) {
      if (!m[i].defined()) m[i] = torch::zeros(params[i].sizes());
      auto g = params[i].grad();
      m[i].mul_(0.9).add_(g, 0.1); // [[device-mixed-op]]
    }
  }
  void eager() {
    for (size_t i = 0; i < params.size(); ++i) {
      m[i] = torch::zeros(params[i].sizes());
      m[i].add_(params[i], 0.1); // [[device-mixed-op]]
    }
  }
  void eager_grad() {
    for (size_t i = 0; i < params.size(); ++i) {
      m[i] = torch::zeros(params[i].sizes());
      m[i].add_(params[i].grad(), 0.1); // [[device-mixed-op]]
    }
  }
  std::vector<torch::Tensor> params, m;
};
torch::nn::Linear net() {
  torch::nn::Linear l(3, 2);
  l->to(torch::kCUDA);
  l(torch::randn({4, 3}, torch::kCUDA)).sum().backward();
  return l;
}
void lazy_bad() { auto l = net(); Opt(l->parameters()).lazy(); }
void eager_bad() { auto l = net(); Opt o(l->parameters()); o.eager(); }
void eager_grad_bad() { auto l = net(); Opt o(l->parameters()); o.eager_grad(); }
void grad_bad() { auto l = net(); for (auto& p : l->parameters()) auto s = p.grad() + torch::zeros({1}); } // [[device-mixed-op]]
void iter_bad() {
  auto l = net();
  std::vector<torch::Tensor> buf;
  for (const auto& p : l->parameters()) buf.push_back(torch::zeros(p.sizes(), p.options().device(torch::kCPU)));
  auto it = buf.begin();
  for (const auto& p : l->parameters()) *it++ += p; // [[device-mixed-op]]
}
void iter2_bad() {
  auto l = net();
  std::vector<torch::Tensor> buf;
  for (const auto& p : l->parameters()) buf.push_back(torch::zeros(p.sizes(), p.options().device(torch::kCPU)));
  for (size_t i = 0; i < buf.size(); ++i) buf[i] += l->parameters()[i]; // [[device-mixed-op]]
}
void iter3_bad() {
  auto l = net();
  std::vector<torch::Tensor> buf;
  for (const auto& p : l->parameters()) buf.push_back(torch::zeros(p.sizes()));
  auto it = buf.begin();
  for (const auto& p : l->parameters()) { *it += p; ++it; } // [[device-mixed-op]]
}
void clone_bad() {
  auto m = std::make_shared<torch::nn::LinearImpl>(3, 2);
  auto a = std::dynamic_pointer_cast<torch::nn::LinearImpl>(m->clone());
  m->to(torch::kCUDA);
  auto d = m->weight - a->weight; // [[device-mixed-op]]
}
void clone2_bad() {
  auto m = std::make_shared<torch::nn::LinearImpl>(3, 2);
  auto k = std::make_shared<torch::nn::LinearImpl>(3, 2);
  m->to(torch::kCUDA);
  auto a = m->parameters(), b = k->parameters();
  for (size_t i = 0; i < a.size(); ++i) auto d = a[i] - b[i]; // [[device-mixed-op]]
}

DT_MAIN(lazy_bad, eager_bad, eager_grad_bad, grad_bad, iter_bad, iter2_bad, iter3_bad, clone_bad,
        clone2_bad)
