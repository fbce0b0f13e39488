#include "../cases.h"

#include <torch/torch.h>
using SD = torch::OrderedDict<std::string, torch::Tensor>;
SD load() {
  SD sd;
  sd.insert("a", torch::randn({2, 6}));
  return sd;
}
void a_bad() {
  auto sd = load();
  auto y = torch::randn({2, 6}, torch::kCUDA) + sd["a"]; // [[device-mixed-op]]
}
void b_bad() {
  SD sd;
  sd.insert("a", torch::randn({2, 6}));
  auto y = torch::randn({2, 6}, torch::kCUDA) + *sd.find("a"); // [[device-mixed-op]]
}
void c_bad() {
  SD sd;
  sd.insert("a", torch::randn({2, 6}));
  for (auto& i : sd) auto y = torch::randn({2, 6}, torch::kCUDA) + i.value(); // [[device-mixed-op]]
}
void d_bad() {
  torch::nn::Linear l(6, 6);
  auto x = torch::randn({6, 6}, torch::kCUDA) + l->named_parameters()["weight"]; // [[device-mixed-op]]
}

DT_MAIN(a_bad, b_bad, c_bad, d_bad)
