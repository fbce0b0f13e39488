#include "../cases.h"
#include <torch/torch.h>
#include <array>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
namespace nn = torch::nn;
using torch::Tensor;

// builder
class LossBuilder {
 public:
  LossBuilder& on(torch::Device d) { device_ = d; return *this; }
  LossBuilder& classes(int64_t n) { n_ = n; return *this; }
  nn::BCEWithLogitsLoss build() const {
    return nn::BCEWithLogitsLoss(nn::BCEWithLogitsLossOptions().pos_weight(torch::ones({n_}, device_)));
  }
 private:
  torch::Device device_{torch::kCPU};
  int64_t n_ = 1;
};
void builder_bad() {
  auto crit = LossBuilder().classes(3).build();
  auto logits = torch::randn({2, 3}, torch::kCUDA);
  auto l = crit(logits, torch::zeros_like(logits)); // [[device-loss-input]]
  (void)l;
}
void builder_ok() {
  auto crit = LossBuilder().classes(3).on(torch::kCUDA).build();
  auto logits = torch::randn({2, 3}, torch::kCUDA);
  auto l = crit(logits, torch::zeros_like(logits));
  (void)l;
}
// CRTP
template <typename Derived>
struct StepBase {
  Tensor run(const Tensor& x) { return static_cast<Derived*>(this)->apply(x); }
};
struct ShiftHost : StepBase<ShiftHost> {
  Tensor apply(const Tensor& x) { return x - torch::full({2}, 0.5); } // [[device-mixed-op]]
};
struct ShiftLike : StepBase<ShiftLike> {
  Tensor apply(const Tensor& x) { return x - torch::full({2}, 0.5, x.options()); }
};
void crtp_bad() { ShiftHost().run(torch::ones({2}, torch::kCUDA)); }
void crtp_ok() { ShiftLike().run(torch::ones({2}, torch::kCUDA)); }
// member function pointer + std::bind + std::async
struct Metric {
  Tensor ref = torch::zeros({2});
  Tensor diff(const Tensor& x) const { return (x - ref).abs(); } // [[device-mixed-op]]
};
void bind_bad() {
  Metric m;
  auto f = std::bind(&Metric::diff, &m, std::placeholders::_1);
  f(torch::ones({2}, torch::kCUDA));
}
void bind_ok() {
  Metric m;
  auto f = std::bind(&Metric::diff, &m, std::placeholders::_1);
  m.ref = m.ref.to(torch::kCUDA);
  f(torch::ones({2}, torch::kCUDA));
}
void memfn_bad() {
  Metric m;
  Tensor (Metric::*fn)(const Tensor&) const = &Metric::diff;
  (m.*fn)(torch::ones({2}, torch::kCUDA));
}
void async_bad() {
  auto bias = torch::ones({2});
  auto fut = std::async(std::launch::deferred, [&bias](const Tensor& x) { return x + bias; }, // [[device-mixed-op]]
                        torch::ones({2}, torch::kCUDA));
  fut.get();
}
void async_ok() {
  auto bias = torch::ones({2}, torch::kCUDA);
  auto fut = std::async(std::launch::deferred, [&bias](const Tensor& x) { return x + bias; }, torch::ones({2}, torch::kCUDA));
  fut.get();
}
// value_or, nested containers
void value_or_bad() {
  std::optional<Tensor> w;
  auto x = torch::ones({2}, torch::kCUDA);
  auto y = x * w.value_or(torch::ones({2})); // [[device-mixed-op]]
  (void)y;
}
void value_or_ok() {
  std::optional<Tensor> w = torch::ones({2}, torch::kCUDA);
  auto x = torch::ones({2}, torch::kCUDA);
  auto y = x * w.value_or(torch::ones({2}));
  (void)y;
}
void nested_map_bad() {
  std::map<std::string, std::vector<Tensor>> bank;
  bank["neg"].push_back(torch::ones({2, 4}));
  bank["pos"].push_back(torch::ones({2, 4}, torch::kCUDA));
  auto sim = torch::einsum("nd,md->nm", {bank["pos"].back(), bank["neg"].back()}); // [[device-mixed-op]]
  (void)sim;
}
void nested_map_ok() {
  std::map<std::string, std::vector<Tensor>> bank;
  bank["neg"].push_back(torch::ones({2, 4}));
  bank["pos"].push_back(torch::ones({2, 4}, torch::kCUDA));
  for (auto& [k, v] : bank)
    for (auto& t : v) t = t.to(torch::kCUDA);
  auto sim = torch::einsum("nd,md->nm", {bank["pos"].back(), bank["neg"].back()});
  (void)sim;
}
// curried lambdas, operator overloads
static auto makeAdder(Tensor b) {
  return [b = std::move(b)](Tensor a) { return a.add(b); }; // [[device-mixed-op]]
}
void curry_bad() { makeAdder(torch::ones({2}))(torch::ones({2}, torch::kCUDA)); }
void curry_ok() { makeAdder(torch::ones({2}).cuda())(torch::ones({2}, torch::kCUDA)); }
struct Gaussian {
  Tensor mu, sigma;
  Gaussian operator*(const Gaussian& o) const { return {mu * o.mu, sigma + o.sigma}; } // [[device-mixed-op]]
};
void operator_bad() {
  Gaussian a{torch::zeros({2}, torch::kCUDA), torch::ones({2}, torch::kCUDA)}, b{a.mu, torch::ones({2})};
  auto c = a * b;
}
void operator_ok() {
  Gaussian a{torch::zeros({2}, torch::kCUDA), torch::ones({2}, torch::kCUDA)}, b{a.mu, torch::ones_like(a.mu)};
  auto c = a * b;
}
// plain helper discards
static void moveInPlaceWrong(Tensor& t) { t.to(torch::kCUDA); } // [[device-discarded-move]]
static void moveInPlace(Tensor& t) { t = t.to(torch::kCUDA); }
void helper_move_bad() {
  auto a = torch::ones({2});
  moveInPlaceWrong(a);
  (void)(a + torch::ones({2}, torch::kCUDA));
}
void helper_move_ok() {
  auto a = torch::ones({2});
  moveInPlace(a);
  (void)(a + torch::ones({2}, torch::kCUDA));
}
// recursion over a tree
struct Node {
  Tensor value;
  std::vector<std::unique_ptr<Node>> kids;
};
static Tensor sumTree(const Node& n) {
  Tensor s = n.value;
  for (const auto& k : n.kids) s = s + sumTree(*k); // [[device-mixed-op]]
  return s;
}
void tree_bad() {
  Node root{torch::ones({2}, torch::kCUDA), {}};
  root.kids.push_back(std::make_unique<Node>(Node{torch::ones({2}), {}}));
  sumTree(root);
}
void tree_ok() {
  Node root{torch::ones({2}, torch::kCUDA), {}};
  root.kids.push_back(std::make_unique<Node>(Node{torch::ones({2}, torch::kCUDA), {}}));
  sumTree(root);
}

DT_MAIN(builder_bad, builder_ok, crtp_bad, crtp_ok, bind_bad, bind_ok, memfn_bad, async_bad, async_ok,
        value_or_bad, value_or_ok, nested_map_bad, nested_map_ok, curry_bad, curry_ok, operator_bad,
        operator_ok, helper_move_bad, helper_move_ok, tree_bad, tree_ok)
