#include "../cases.h"

#include <torch/torch.h>
#include <functional>
#include <map>
#include <string>
using Factory = std::function<torch::Tensor(const torch::TensorOptions&)>;
struct Registry {
  static Registry& instance() { static Registry r; return r; }
  void add(const std::string& n, Factory f) { f_[n] = std::move(f); }
  torch::Tensor make(const std::string& n, const torch::TensorOptions& o) const { return f_.find(n)->second(o); }
  torch::Tensor make_at(const std::string& n, const torch::TensorOptions& o) const { return f_.at(n)(o); }
  std::map<std::string, Factory> f_;
};
void one_bad() {
  Registry r;
  r.add("host", [](const torch::TensorOptions& o) { return torch::ones({6}, o.device(torch::kCPU)); });
  auto x = torch::randn({2, 6}, torch::kCUDA);
  auto y = x * r.make_at("host", x.options()); // [[device-mixed-op]]
}
void two_bad() {
  Registry r;
  r.add("gate", [](const torch::TensorOptions& o) { return torch::ones({6}, o); });
  r.add("host", [](const torch::TensorOptions& o) { return torch::ones({6}, o.device(torch::kCPU)); });
  auto x = torch::randn({2, 6}, torch::kCUDA);
  auto y = x * r.make("host", x.options()); // [[device-mixed-op]]
}
void two_ok() {
  Registry r;
  r.add("gate", [](const torch::TensorOptions& o) { return torch::ones({6}, o); });
  r.add("host", [](const torch::TensorOptions& o) { return torch::ones({6}, o.device(torch::kCPU)); });
  auto x = torch::randn({2, 6}, torch::kCUDA);
  auto y = x * r.make("gate", x.options());
}
void three_bad() {
  Registry::instance().add("host", [](const torch::TensorOptions& o) { return torch::ones({6}, o.device(torch::kCPU)); });
  auto x = torch::randn({2, 6}, torch::kCUDA);
  auto y = x * Registry::instance().make("host", x.options()); // [[device-mixed-op]]
}

DT_MAIN(one_bad, two_bad, two_ok, three_bad)
