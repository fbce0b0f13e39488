#include "../cases.h"
#include <torch/torch.h>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
namespace nn = torch::nn;
using torch::Tensor;

// 1. vector of unregistered submodules
struct UnregisteredStackImpl : nn::Module {
  explicit UnregisteredStackImpl(int n) {
    for (int i = 0; i < n; ++i) layers.push_back(nn::Linear(4, 4));
    head = register_module("head", nn::Linear(4, 1));
  }
  Tensor forward(Tensor x) {
    for (auto& l : layers) x = torch::relu(l(x)); // [[device-unregistered-tensor]]
    return head(x);
  }
  std::vector<nn::Linear> layers;
  nn::Linear head{nullptr};
};
TORCH_MODULE(UnregisteredStack);
struct RegisteredStackImpl : nn::Module {
  explicit RegisteredStackImpl(int n) {
    for (int i = 0; i < n; ++i) layers.push_back(register_module("l" + std::to_string(i), nn::Linear(4, 4)));
    head = register_module("head", nn::Linear(4, 1));
  }
  Tensor forward(Tensor x) {
    for (auto& l : layers) x = torch::relu(l(x));
    return head(x);
  }
  std::vector<nn::Linear> layers;
  nn::Linear head{nullptr};
};
TORCH_MODULE(RegisteredStack);
void unreg_stack_bad() {
  UnregisteredStack m(2);
  m->to(torch::kCUDA);
  m(torch::ones({1, 4}, torch::kCUDA));
}
void unreg_stack_ok() {
  RegisteredStack m(2);
  m->to(torch::kCUDA);
  m(torch::ones({1, 4}, torch::kCUDA));
}

// 2. virtual base with build(), created by a factory
class Backbone : public nn::Module {
 public:
  virtual ~Backbone() = default;
  virtual Tensor features(const Tensor& x) = 0;
};
class MlpBackbone final : public Backbone {
 public:
  MlpBackbone() { fc_ = register_module("fc", nn::Linear(4, 4)); }
  Tensor features(const Tensor& x) override { return torch::relu(fc_(x)); }

 private:
  nn::Linear fc_{nullptr};
};
class FourierBackbone final : public Backbone {
 public:
  FourierBackbone() {
    freqs_ = torch::linspace(1.0, 4.0, 4);
    fc_ = register_module("fc", nn::Linear(4, 4));
  }
  Tensor features(const Tensor& x) override { return fc_(torch::sin(x * freqs_)); } // [[device-unregistered-tensor]]

 private:
  Tensor freqs_;
  nn::Linear fc_{nullptr};
};
class FourierBufferBackbone final : public Backbone {
 public:
  FourierBufferBackbone()
      : freqs_(register_buffer("freqs", torch::linspace(1.0, 4.0, 4))), fc_(register_module("fc", nn::Linear(4, 4))) {}
  Tensor features(const Tensor& x) override { return fc_(torch::sin(x * freqs_)); }

 private:
  Tensor freqs_;
  nn::Linear fc_;
};
static std::shared_ptr<Backbone> makeBackbone(const std::string& name) {
  if (name == "mlp") return std::make_shared<MlpBackbone>();
  if (name == "fourier") return std::make_shared<FourierBackbone>();
  if (name == "fourier_buffer") return std::make_shared<FourierBufferBackbone>();
  return nullptr;
}
class Classifier : public nn::Module {
 public:
  explicit Classifier(std::shared_ptr<Backbone> b) : body_(std::move(b)), head_(4, 2) {
    register_module("body", body_);
    register_module("head", head_);
  }
  Tensor forward(const Tensor& x) { return head_(body_->features(x)); }

 private:
  std::shared_ptr<Backbone> body_;
  nn::Linear head_;
};
void fourier_bad() {
  Classifier c(makeBackbone("fourier"));
  c.to(torch::kCUDA);
  c.forward(torch::ones({1, 4}, torch::kCUDA));
}
void fourier_ok() {
  Classifier c(makeBackbone("fourier_buffer")), d(makeBackbone("mlp"));
  c.to(torch::kCUDA);
  d.to(torch::kCUDA);
  auto x = torch::ones({1, 4}, torch::kCUDA);
  (void)(c.forward(x) + d.forward(x));
}

// 3. members on the constructor's device argument
struct RbfImpl : nn::Module {
  RbfImpl(int64_t n, torch::Device device) : centers(torch::linspace(0, 1, n, torch::TensorOptions().device(device))) {
    w = register_module("w", nn::Linear(n, 1));
    this->to(device);
  }
  Tensor forward(const Tensor& x) { return w(torch::exp(-(x.unsqueeze(-1) - centers).pow(2))); }
  Tensor centers;
  nn::Linear w{nullptr};
};
TORCH_MODULE(Rbf);
void rbf_ok() {
  Rbf r(3, torch::kCUDA);
  r(torch::ones({2}, torch::kCUDA));
}
// 4. override of to()
class NormalizedNet : public nn::Module {
 public:
  NormalizedNet() : fc_(register_module("fc", nn::Linear(3, 3))), mean_(torch::tensor({0.4f, 0.5f, 0.6f})) {}
  void to(torch::Device device, bool non_blocking = false) override {
    nn::Module::to(device, non_blocking);
    mean_ = mean_.to(device);
  }
  Tensor forward(const Tensor& x) { return fc_(x - mean_); }

 private:
  nn::Linear fc_;
  Tensor mean_;
};
class NormalizedNetPlain : public nn::Module {
 public:
  NormalizedNetPlain()
      : fc_(register_module("fc", nn::Linear(3, 3))),
        mean_(torch::tensor({0.4f, 0.5f, 0.6f})) {}
  Tensor forward(const Tensor& x) { return fc_(x - mean_); } // [[device-unregistered-tensor]]

 private:
  nn::Linear fc_;
  Tensor mean_;
};
void norm_override_ok() {
  auto n = std::make_unique<NormalizedNet>();
  n->to(torch::kCUDA);
  n->forward(torch::ones({1, 3}, torch::kCUDA));
}
void norm_plain_bad() {
  auto n = std::make_unique<NormalizedNetPlain>();
  n->to(torch::kCUDA);
  n->forward(torch::ones({1, 3}, torch::kCUDA));
}

// 5. per-forward caches
struct RotaryImpl : nn::Module {
  explicit RotaryImpl(bool follow) : follow(follow) { lin = register_module("lin", nn::Linear(4, 4)); }
  Tensor forward(const Tensor& x) {
    const auto n = x.size(0);
    if (!cache.defined() || cache.size(0) < n) {
      cache = torch::arange(n, torch::kFloat).unsqueeze(1);
      if (follow) cache = cache.to(x.device());
    }
    return lin(x) * cache.slice(0, 0, n).cos(); // [[device-mixed-op]]
  }
  nn::Linear lin{nullptr};
  Tensor cache;
  bool follow;
};
TORCH_MODULE(Rotary);
void rotary_cache_bad() {
  Rotary r(false);
  r->to(torch::kCUDA);
  r(torch::ones({3, 4}, torch::kCUDA));
}
void rotary_cache_ok() {
  Rotary r(true);
  r->to(torch::kCUDA);
  r(torch::ones({3, 4}, torch::kCUDA));
}

// 6. registered after to()
struct LateImpl : nn::Module {
  LateImpl() { fc = register_module("fc", nn::Linear(2, 2)); }
  void addHead() { head = register_module("head", nn::Linear(2, 2)); }
  Tensor forward(const Tensor& x) {
    return head(fc(x)); // [[device-mixed-op]]
  }
  nn::Linear fc{nullptr}, head{nullptr};
};
TORCH_MODULE(Late);
void late_head_bad() {
  Late l;
  l->to(torch::kCUDA);
  l->addHead();
  l(torch::ones({1, 2}, torch::kCUDA));
}
void late_head_ok() {
  Late l;
  l->addHead();
  l->to(torch::kCUDA);
  l(torch::ones({1, 2}, torch::kCUDA));
}

// 7. optimizer built before to(); views taken before to()
void optimizer_before_to_ok() {
  nn::Linear l(2, 1);
  torch::optim::Adam opt(l->parameters(), torch::optim::AdamOptions(1e-3));
  l->to(torch::kCUDA);
  for (int i = 0; i < 2; ++i) {
    opt.zero_grad();
    l(torch::ones({1, 2}, torch::kCUDA)).sum().backward();
    opt.step();
  }
}
void alias_before_to_ok() {
  nn::Linear l(2, 2);
  auto w = l->weight;
  l->to(torch::kCUDA);
  auto y = torch::ones({1, 2}, torch::kCUDA).mm(w);
  (void)y;
}
void view_before_to_bad() {
  nn::Linear l(2, 2);
  auto w = l->weight.t();
  l->to(torch::kCUDA);
  auto y = torch::ones({1, 2}, torch::kCUDA).mm(w); // [[device-mixed-op]]
  (void)y;
}
void weight_tying_ok() {
  nn::Embedding e(5, 2);
  nn::Linear out(nn::LinearOptions(2, 5).bias(false));
  out->weight = e->weight;
  e->to(torch::kCUDA);
  auto y = torch::linear(e(torch::zeros({1}, torch::dtype(torch::kLong).device(torch::kCUDA))), e->weight);
  (void)y;
}

// 8. Sequential, AnyModule, Functional lambdas
void functional_module_bad() {
  auto shift = torch::ones({4});
  nn::Sequential s(nn::Linear(2, 4), nn::Functional([shift](const Tensor& x) { return x + shift; })); // [[device-mixed-op]]
  s->to(torch::kCUDA);
  s->forward(torch::ones({1, 2}, torch::kCUDA));
}
void functional_module_ok() {
  auto shift = torch::ones({4}, torch::kCUDA);
  nn::Sequential s(nn::Linear(2, 4), nn::Functional([shift](const Tensor& x) { return x + shift; }));
  s->to(torch::kCUDA);
  s->forward(torch::ones({1, 2}, torch::kCUDA));
}
void any_module_bad() {
  nn::AnyModule any(nn::Linear(2, 2));
  any.ptr()->to(torch::kCUDA);
  auto y = any.forward(torch::ones({1, 2})); // [[device-mixed-op]]
  (void)y;
}
void any_module_ok() {
  nn::AnyModule any(nn::Linear(2, 2));
  any.ptr()->to(torch::kCUDA);
  auto y = any.forward(torch::ones({1, 2}, torch::kCUDA));
  (void)(y + 1);
}

DT_MAIN(unreg_stack_bad, unreg_stack_ok, fourier_bad, fourier_ok, rbf_ok, norm_override_ok, norm_plain_bad,
        rotary_cache_bad, rotary_cache_ok, late_head_bad, late_head_ok, optimizer_before_to_ok,
        alias_before_to_ok, view_before_to_bad, weight_tying_ok, functional_module_bad,
        functional_module_ok, any_module_bad, any_module_ok)
