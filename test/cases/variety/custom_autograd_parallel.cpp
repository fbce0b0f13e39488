#include "../cases.h"
#include <torch/torch.h>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
namespace nn = torch::nn;

// --------------------------- custom autograd ---------------------------
class ScaledRelu : public torch::autograd::Function<ScaledRelu> {
 public:
  static Tensor forward(AutogradContext* ctx, Tensor x, Tensor scale) {
    ctx->save_for_backward({x, scale});
    return x.clamp_min(0) * scale; // [[device-mixed-op]]
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto saved = ctx->get_saved_variables();
    auto g = grads[0] * (saved[0] > 0) * saved[1];
    return {g, Tensor()};
  }
};
void fn_forward_bad() {
  auto x = torch::randn({4}, torch::dtype(torch::kFloat).device(torch::kCUDA).requires_grad(true));
  auto s = torch::full({4}, 0.5);
  ScaledRelu::apply(x, s).sum().backward();
}
void fn_forward_ok() {
  auto x = torch::randn({4}, torch::dtype(torch::kFloat).device(torch::kCUDA).requires_grad(true));
  auto s = torch::full({4}, 0.5, x.device());
  ScaledRelu::apply(x, s).sum().backward();
}
class BernoulliSte : public torch::autograd::Function<BernoulliSte> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& p, bool host) {
    auto u = host ? torch::rand(p.sizes()) : torch::rand(p.sizes(), p.options());
    return (u < p).to(p.dtype()); // [[device-mixed-op]]
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0], Tensor()}; }
};
void ste_bad() {
  auto p = torch::full({4}, 0.5, torch::TensorOptions(torch::kCUDA).requires_grad(true));
  BernoulliSte::apply(p, true).sum().backward();
}
void ste_ok() {
  auto p = torch::full({4}, 0.5, torch::TensorOptions(torch::kCUDA).requires_grad(true));
  BernoulliSte::apply(p, false).sum().backward();
}
class HuberFn : public torch::autograd::Function<HuberFn> {
 public:
  static Tensor forward(AutogradContext* ctx, Tensor p, Tensor t, double delta) {
    ctx->saved_data["delta"] = delta;
    ctx->saved_data["weight"] = torch::linspace(0, 1, p.size(0));
    ctx->save_for_backward({p, t});
    return (p - t).abs().sum();
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto s = ctx->get_saved_variables();
    auto diff = torch::sign(s[0] - s[1]);
    auto w = ctx->saved_data["weight"].toTensor();
    return {g[0] * diff * w, Tensor(), Tensor()}; // [[device-mixed-op]]
  }
};
class HuberFnFixed : public torch::autograd::Function<HuberFnFixed> {
 public:
  static Tensor forward(AutogradContext* ctx, Tensor p, Tensor t, double delta) {
    ctx->saved_data["delta"] = delta;
    ctx->saved_data["weight"] = torch::linspace(0, 1, p.size(0), p.options().requires_grad(false));
    ctx->save_for_backward({p, t});
    return (p - t).abs().sum();
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto s = ctx->get_saved_variables();
    auto diff = torch::sign(s[0] - s[1]);
    auto w = ctx->saved_data["weight"].toTensor();
    return {g[0] * diff * w, Tensor(), Tensor()};
  }
};
void fn_backward_bad() {
  auto p = torch::randn({4}, torch::device(torch::kCUDA).requires_grad(true));
  HuberFn::apply(p, torch::zeros_like(p), 1.0).backward();
}
void fn_backward_ok() {
  auto p = torch::randn({4}, torch::device(torch::kCUDA).requires_grad(true));
  HuberFnFixed::apply(p, torch::zeros_like(p), 1.0).backward();
}

// --------------------------- model parallel ---------------------------
class PipelineImpl : public nn::Module {
 public:
  PipelineImpl(std::vector<torch::Device> devices, bool hop) : devices_(std::move(devices)), hop_(hop) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      auto l = register_module("stage" + std::to_string(i), nn::Linear(4, 4));
      l->to(devices_[i]);
      stages_.push_back(l);
    }
  }
  Tensor forward(Tensor x) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (hop_) x = x.to(devices_[i]);
      x = torch::relu(stages_[i]->forward(x)); // [[device-mixed-op]]
    }
    return x;
  }

 private:
  std::vector<torch::Device> devices_;
  std::vector<nn::Linear> stages_;
  bool hop_;
};
TORCH_MODULE(Pipeline);
void pipeline_bad() {
  Pipeline p(std::vector<torch::Device>{{torch::kCUDA, 0}, {torch::kCUDA, 1}}, false);
  p(torch::randn({2, 4}, torch::Device(torch::kCUDA, 0)));
}
void pipeline_ok() {
  Pipeline p(std::vector<torch::Device>{{torch::kCUDA, 0}, {torch::kCUDA, 1}}, true);
  p(torch::randn({2, 4}, torch::Device(torch::kCUDA, 0)));
}

struct TwoTowerImpl : nn::Module {
  TwoTowerImpl() : left(4, 4), right(4, 4) {
    register_module("left", left);
    register_module("right", right);
  }
  void place(const torch::Device& a, const torch::Device& b) {
    left->to(a);
    right->to(b);
    a_ = a;
    b_ = b;
  }
  Tensor merge(const Tensor& x) {
    auto l = left(x.to(a_));
    auto r = right(x.to(b_));
    return l + r.to(a_);
  }
  Tensor mergeBroken(const Tensor& x) {
    auto l = left(x.to(a_));
    auto r = right(x.to(b_));
    return l + r; // [[device-mixed-op]]
  }
  nn::Linear left, right;
  torch::Device a_ = torch::kCPU, b_ = torch::kCPU;
};
TORCH_MODULE(TwoTower);
void towers_bad() {
  TwoTower t;
  t->place(torch::Device("cuda:0"), torch::Device("cuda:1"));
  t->mergeBroken(torch::randn({1, 4}));
}
void towers_ok() {
  TwoTower t;
  t->place(torch::Device("cuda:0"), torch::Device("cuda:1"));
  t->merge(torch::randn({1, 4}));
}
void towers_same_ok() {
  TwoTower t;
  t->place(torch::Device("cuda:1"), torch::Device("cuda:1"));
  t->mergeBroken(torch::randn({1, 4}));
}

// residual across a device boundary
void residual_hop_bad() {
  const torch::Device d0{torch::kCUDA, 0}, d1{torch::kCUDA, 1};
  nn::Linear a(4, 4), b(4, 4);
  a->to(d0);
  b->to(d1);
  auto x = torch::randn({2, 4}, d0);
  auto h = a(x);
  auto y = b(h.to(d1));
  y = y + h; // [[device-mixed-op]]
}
void residual_hop_ok() {
  const torch::Device d0{torch::kCUDA, 0}, d1{torch::kCUDA, 1};
  nn::Linear a(4, 4), b(4, 4);
  a->to(d0);
  b->to(d1);
  auto x = torch::randn({2, 4}, d0);
  auto h = a(x).to(d1);
  auto y = b(h);
  y = y + h;
}

// loss terms of stages summed as 0-dim tensors on different GPUs
void scalar_sum_bad() {
  std::array<torch::Device, 2> devs{torch::Device(torch::kCUDA, 0), torch::Device(torch::kCUDA, 1)};
  auto nll = torch::rand({3}, devs[0]).mean();
  auto kl = torch::rand({3}, devs[1]).mean();
  auto total = nll + 0.1 * kl; // [[device-mixed-op]]
  (void)total;
}
void scalar_sum_ok() {
  std::array<torch::Device, 2> devs{torch::Device(torch::kCUDA, 0), torch::Device(torch::kCUDA, 1)};
  auto nll = torch::rand({3}, devs[0]).mean();
  auto kl = torch::rand({3}, devs[1]).mean();
  auto total = nll + 0.1 * kl.cpu();
  (void)total;
}

// gradient norm over devices, index-less kCUDA vs cuda:1
void clip_norm_bad() {
  nn::Linear a(2, 2), b(2, 2);
  a->to(torch::Device("cuda:0"));
  b->to(torch::Device("cuda:1"));
  auto h = a(torch::ones({1, 2}, torch::Device("cuda:0")));
  b(h.to(torch::Device("cuda:1"))).sum().backward();
  auto params = a->parameters();
  for (auto& p : b->parameters()) params.push_back(p);
  nn::utils::clip_grad_norm_(params, 1.0); // [[device-mixed-op]]
}
void clip_norm_ok() {
  nn::Linear a(2, 2), b(2, 2);
  a->to(torch::Device("cuda:0"));
  b->to(torch::Device("cuda:1"));
  auto h = a(torch::ones({1, 2}, torch::Device("cuda:0")));
  b(h.to(torch::Device("cuda:1"))).sum().backward();
  nn::utils::clip_grad_norm_(a->parameters(), 1.0);
  nn::utils::clip_grad_norm_(b->parameters(), 1.0);
  double total = 0;
  for (auto& m : {a, b})
    for (auto& p : m->parameters()) total += p.grad().norm().item<double>();
}
void index_lost_bad() {
  torch::Device dev(torch::kCUDA, 1);
  auto x = torch::randn({3}, dev);
  auto out = torch::empty({3}, x.options().device(torch::kCUDA));
  torch::add_out(out, x, x); // [[device-mixed-op]]
}
void index_lost_ok() {
  torch::Device dev(torch::kCUDA, 1);
  auto x = torch::randn({3}, dev);
  auto out = torch::empty({3}, x.options().dtype(torch::kFloat));
  torch::add_out(out, x, x);
}

DT_MAIN(fn_forward_bad, fn_forward_ok, ste_bad, ste_ok, fn_backward_bad, fn_backward_ok, pipeline_bad,
        pipeline_ok, towers_bad, towers_ok, towers_same_ok, residual_hop_bad, residual_hop_ok,
        scalar_sum_bad, scalar_sum_ok, clip_norm_bad, clip_norm_ok, index_lost_bad, index_lost_ok)
