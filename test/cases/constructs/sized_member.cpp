#include "../cases.h"

#include <torch/torch.h>
struct A { std::vector<torch::Tensor> p, m; explicit A(std::vector<torch::Tensor> x) : p(std::move(x)), m(p.size()) {}
  void go() { for (size_t i = 0; i < p.size(); ++i) { m[i] = torch::zeros({4}); m[i].add_(p[i]); } } }; // [[device-mixed-op]]
struct B { std::vector<torch::Tensor> p, m; explicit B(std::vector<torch::Tensor> x) : p(x) { m.resize(p.size()); }
  void go() { for (size_t i = 0; i < p.size(); ++i) { m[i] = torch::zeros({4}); m[i].add_(p[i]); } } }; // [[device-mixed-op]]
struct C { std::vector<torch::Tensor> p, m; explicit C(std::vector<torch::Tensor> x) : p(std::move(x)) { for (auto& t : p) m.push_back(torch::zeros({4})); }
  void go() { for (size_t i = 0; i < p.size(); ++i) m[i].add_(p[i]); } }; // [[device-mixed-op]]
struct D { std::vector<torch::Tensor> p; explicit D(std::vector<torch::Tensor> x) : p(std::move(x)) {}
  void go() { for (size_t i = 0; i < p.size(); ++i) { auto m = torch::zeros({1, 4}); m.add_(p[i]); } } }; // [[device-mixed-op]]
struct E { std::vector<torch::Tensor> p, m; explicit E(std::vector<torch::Tensor> x) : p(std::move(x)), m(p.size()) {}
  void go() { for (size_t i = 0; i < p.size(); ++i) { m[i] = torch::zeros(p[i].sizes()); m[i].add_(p[i]); } } }; // [[device-mixed-op]]
struct F { std::vector<torch::Tensor> p, m; explicit F(std::vector<torch::Tensor> x) : p(std::move(x)), m(p.size()) {}
  void go() { for (size_t i = 0; i < m.size(); ++i) { m[i] = torch::zeros({4}); m[i].add_(p[i]); } } }; // [[device-mixed-op]]
std::vector<torch::Tensor> ps() { return {torch::ones({4}, torch::kCUDA), torch::ones({4}, torch::kCUDA)}; }
torch::nn::Linear lin() { torch::nn::Linear l(4, 1); l->to(torch::kCUDA); return l; }
void a_bad() { A a(ps()); a.go(); }
void b_bad() { B a(ps()); a.go(); }
void c_bad() { C a(ps()); a.go(); }
void d_bad() { auto l = lin(); D a(l->parameters()); a.go(); }
void e_bad() { auto l = lin(); E a(l->parameters()); a.go(); }
void f_bad() { F a(ps()); a.go(); }
void g_bad() {
  auto src = ps();
  std::vector<torch::Tensor> out(src.size());
  for (size_t i = 0; i < src.size(); ++i) out[i] = src[i].cpu();
  auto s = src[0] + out[0]; // [[device-mixed-op]]
}
void h_bad() {
  auto src = lin()->parameters();
  std::vector<torch::Tensor> out(src.size());
  for (size_t i = 0; i < src.size(); ++i) out[i] = src[i].cpu();
  auto s = src[0] + out[0]; // [[device-mixed-op]]
}
void i_bad() {
  auto src = ps();
  std::vector<torch::Tensor> out(src.size());
  for (int64_t i = src.size() - 1; i >= 0; --i) out[i] = src[i].cpu();
  auto s = torch::stack(out) + torch::ones({4}, torch::kCUDA); // [[device-mixed-op]]
}

DT_MAIN(a_bad, b_bad, c_bad, d_bad, e_bad, f_bad, g_bad, h_bad, i_bad)
