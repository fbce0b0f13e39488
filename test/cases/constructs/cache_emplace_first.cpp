#include "../cases.h"

#include <torch/torch.h>
#include <unordered_map>
struct T {
  std::unordered_map<int64_t, std::pair<torch::Tensor, torch::Tensor>> cache;
  const std::pair<torch::Tensor, torch::Tensor>& get(int64_t n) {
    auto it = cache.find(n);
    if (it == cache.end()) {
      auto e = torch::randn({n, 8});
      it = cache.emplace(n, std::make_pair(e.cos(), e.sin())).first;
    }
    return it->second;
  }
  const torch::Tensor& get2(int64_t n) {
    auto [it, fresh] = one.try_emplace(n, torch::Tensor());
    if (fresh) it->second = torch::randn({n, 8});
    return it->second;
  }
  std::unordered_map<int64_t, torch::Tensor> one;
  torch::Tensor get3(int64_t n, bool host) {
    auto e = torch::randn({n, 8});
    if (!host) e = e.to(torch::kCUDA);
    return e;
  }
};
void a_bad() {
  T t;
  auto q = torch::randn({4, 8}, torch::kCUDA);
  const auto& cs = t.get(4);
  auto o = q * cs.first; // [[device-mixed-op]]
}
void b_bad() {
  T t;
  auto q = torch::randn({4, 8}, torch::kCUDA);
  auto o = q * t.get2(4); // [[device-mixed-op]]
}
void c_bad() {
  T t;
  auto q = torch::randn({4, 8}, torch::kCUDA);
  auto o = q * t.get3(4, true); // [[device-mixed-op]]
}
void c_ok() {
  T t;
  auto q = torch::randn({4, 8}, torch::kCUDA);
  auto o = q * t.get3(4, false);
}

DT_MAIN(a_bad, b_bad, c_bad, c_ok)
