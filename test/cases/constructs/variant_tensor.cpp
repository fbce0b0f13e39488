#include "../cases.h"

#include <torch/torch.h>
#include <variant>
using Condition = std::variant<std::monostate, int64_t, torch::Tensor>;
torch::Tensor f(torch::Tensor x, const Condition& c) {
  if (std::holds_alternative<torch::Tensor>(c)) x = x + std::get<torch::Tensor>(c); // [[device-mixed-op]]
  return x;
}
torch::Tensor g(torch::Tensor x, const std::variant<double, torch::Tensor>& c) {
  if (auto* t = std::get_if<torch::Tensor>(&c)) return x + *t; // [[device-mixed-op]]
  return x * std::get<double>(c);
}
torch::Tensor h(torch::Tensor x, const std::variant<double, torch::Tensor>& c) {
  return std::visit([&](const auto& v) { return x + v; }, c); // [[device-mixed-op]]
}
torch::Tensor k(torch::Tensor x, const std::variant<double, torch::Tensor>& c) {
  return x + std::get<1>(c); // [[device-mixed-op]]
}
void f_bad() { f(torch::randn({2, 6}, torch::kCUDA), Condition{torch::randn({2, 6})}); }
void g_bad() { g(torch::randn({2, 6}, torch::kCUDA), torch::randn({2, 6})); }
void h_bad() { h(torch::randn({2, 6}, torch::kCUDA), torch::randn({2, 6})); }
void k_bad() { std::variant<double, torch::Tensor> v; v = torch::randn({2, 6}); k(torch::randn({2, 6}, torch::kCUDA), v); }

DT_MAIN(f_bad, g_bad, h_bad, k_bad)
