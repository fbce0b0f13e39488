// torch::autograd::Function: forward and backward are project code reached through apply() and backward().
#include "../cases.h"
#include <torch/torch.h>

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

struct ScaleByHostTable : Function<ScaleByHostTable> {
  static Tensor forward(AutogradContext *ctx, Tensor x) {
    Tensor table = torch::linspace(0.5, 1.5, x.size(-1));
    ctx->save_for_backward({table});
    return x * table; // [[device-mixed-op]]
  }
  static tensor_list backward(AutogradContext *ctx, tensor_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0]};
  }
};

static void function_forward_host_table_bad() {
  auto x = torch::rand({2, 3}, torch::TensorOptions(torch::kCUDA).requires_grad(true));
  ScaleByHostTable::apply(x).sum().backward();
}

struct ScaleByTable : Function<ScaleByTable> {
  static Tensor forward(AutogradContext *ctx, Tensor x) {
    Tensor table = torch::linspace(0.5, 1.5, x.size(-1), x.options().requires_grad(false));
    ctx->save_for_backward({table});
    return x * table;
  }
  static tensor_list backward(AutogradContext *ctx, tensor_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0]};
  }
};

static void function_forward_table_ok() {
  auto x = torch::rand({2, 3}, torch::TensorOptions(torch::kCUDA).requires_grad(true));
  ScaleByTable::apply(x).sum().backward();
}

struct LinearFunction : Function<LinearFunction> {
  static Tensor forward(AutogradContext *ctx, Tensor input, Tensor weight) {
    ctx->save_for_backward({input, weight});
    return input.mm(weight.t()); // [[device-mixed-op]]
  }
  static tensor_list backward(AutogradContext *ctx, tensor_list grads) {
    auto saved = ctx->get_saved_variables();
    return {grads[0].mm(saved[1]), grads[0].t().mm(saved[0])};
  }
};

static void function_weight_on_host_bad() {
  auto input = torch::rand({2, 3}, torch::kCUDA);
  auto weight = torch::rand({4, 3}).requires_grad_();
  auto y = LinearFunction::apply(input, weight);
  TORCH_CHECK(y.defined());
}

struct CudaLinearFunction : Function<CudaLinearFunction> {
  static Tensor forward(AutogradContext *ctx, Tensor input, Tensor weight) {
    ctx->save_for_backward({input, weight});
    return input.mm(weight.t());
  }
  static tensor_list backward(AutogradContext *ctx, tensor_list grads) {
    auto saved = ctx->get_saved_variables();
    return {grads[0].mm(saved[1]), grads[0].t().mm(saved[0])};
  }
};

static void function_weight_on_device_ok() {
  auto input = torch::rand({2, 3}, torch::kCUDA);
  auto weight = torch::rand({4, 3}, torch::kCUDA).requires_grad_();
  CudaLinearFunction::apply(input, weight).sum().backward();
}

// The straight-through estimator builds its mask in backward.
struct StraightThrough : Function<StraightThrough> {
  static Tensor forward(AutogradContext *ctx, Tensor x) {
    ctx->save_for_backward({x});
    return x.sign();
  }
  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    Tensor x = ctx->get_saved_variables()[0];
    Tensor window = x.abs().le(1).to(torch::kFloat);
    return {grads[0] * window};
  }
};

static void straight_through_ok() {
  auto x = torch::randn({2, 3}, torch::TensorOptions(torch::kCUDA).requires_grad(true));
  StraightThrough::apply(x).sum().backward();
}

// Only backward is wrong: the forward pass and every test of it are fine.
struct ClippedIdentity : Function<ClippedIdentity> {
  static Tensor forward(AutogradContext *, Tensor x) { return x.clone(); }
  static tensor_list backward(AutogradContext *, tensor_list grads) {
    Tensor slope = torch::full({3}, 0.5);
    return {grads[0] * slope}; // [[device-mixed-op]]
  }
};

static void function_backward_slope_on_host_bad() {
  auto x = torch::rand({2, 3}, torch::TensorOptions(torch::kCUDA).requires_grad(true));
  ClippedIdentity::apply(x).sum().backward();
}

DT_MAIN(function_forward_host_table_bad, function_forward_table_ok, function_weight_on_host_bad,
        function_weight_on_device_ok, straight_through_ok, function_backward_slope_on_host_bad)
