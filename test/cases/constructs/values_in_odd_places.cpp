// A visitor made of lambdas, options from a dtype, an array reference from a pointer, tensors nobody filled.
#include "../cases.h"

#include <torch/torch.h>
#include <variant>
#include <vector>

namespace {

struct Dense {
  torch::Tensor x;
};
struct Tokens {
  torch::Tensor ids;
};
template <class... Ts> struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts> Overloaded(Ts...) -> Overloaded<Ts...>;

void visitor_bad() {
  torch::nn::Embedding table(8, 4);
  table->to(torch::kCUDA);
  std::variant<Dense, Tokens> in = Tokens{torch::zeros({2}, torch::kLong)};
  auto y = std::visit(Overloaded{[&](const Dense &dense) { return dense.x.to(torch::kCUDA); },
                                 [&](const Tokens &tokens) {
                                   return table(tokens.ids); // [[device-mixed-op]]
                                 }},
                      in);
}

void visitor_ok() {
  torch::nn::Embedding table(8, 4);
  table->to(torch::kCUDA);
  std::variant<Dense, Tokens> in = Tokens{torch::zeros({2}, torch::kLong)};
  auto y =
      std::visit(Overloaded{[&](const Dense &dense) { return dense.x.to(torch::kCUDA); },
                            [&](const Tokens &tokens) { return table(tokens.ids.to(torch::kCUDA)); }},
                 in);
}

void dtype_options_bad() {
  auto reward = torch::rand({5, 2}, torch::kCUDA);
  auto last = torch::zeros({2}, reward.dtype());
  auto sum = reward[0] + last; // [[device-mixed-op]]
}

void dtype_options_ok() {
  auto reward = torch::rand({5, 2}, torch::kCUDA);
  auto last = torch::zeros({2}, reward.options());
  auto sum = reward[0] + last;
}

void array_ref_bad() {
  std::vector<torch::Tensor> labels;
  for (int i = 0; i < 3; ++i)
    labels.push_back(torch::zeros({10}));
  auto label = torch::stack(c10::ArrayRef<torch::Tensor>(&labels[0], 3));
  auto out = torch::randn({3, 10}, torch::kCUDA);
  auto loss = torch::nn::functional::cross_entropy(out, label); // [[device-loss-input]]
}

void array_ref_ok() {
  std::vector<torch::Tensor> labels;
  for (int i = 0; i < 3; ++i)
    labels.push_back(torch::zeros({10}, torch::kCUDA));
  auto label = torch::stack(c10::ArrayRef<torch::Tensor>(&labels[0], 3));
  auto out = torch::randn({3, 10}, torch::kCUDA);
  auto loss = torch::nn::functional::cross_entropy(out, label);
}

// These losses have kernels of their own, which take no number on the CPU; others are made of operators that do.
void target_of_a_kernel_bad() {
  auto score = torch::rand({4, 1}, torch::kCUDA);
  auto loss = torch::nn::functional::mse_loss(score, torch::tensor(1.0f)); // [[device-loss-input]]
}

void target_of_a_scalar_kernel_bad() {
  auto score = torch::rand({4, 1}, torch::kCUDA);
  auto loss = torch::smooth_l1_loss(score.mean(), torch::tensor(1.0f)); // [[device-loss-input]]
}

void target_of_operators_ok() {
  auto score = torch::rand({4, 1}, torch::kCUDA);
  auto loss = torch::l1_loss(score, torch::tensor(1.0f));
  auto scalars = torch::nn::functional::l1_loss(score.mean(), torch::tensor(1.0f));
}

void assigned_parameter_bad() {
  torch::nn::BatchNorm1d norm(3);
  norm->to(torch::kCUDA);
  norm->running_mean = torch::zeros({3});
  auto y = norm(torch::ones({2, 3}, torch::kCUDA)); // [[device-mixed-op]]
}

void assigned_parameter_ok() {
  torch::nn::BatchNorm1d norm(3);
  norm->to(torch::kCUDA);
  norm->running_mean = torch::zeros({3}, torch::kCUDA);
  auto y = norm(torch::ones({2, 3}, torch::kCUDA));
}

void tied_weights_ok() {
  torch::nn::Embedding table(6, 4);
  torch::nn::Linear out(torch::nn::LinearOptions(4, 6).bias(false));
  out->weight = table->weight;
  table->to(torch::kCUDA);
  out->to(torch::kCUDA);
  auto y = out(table(torch::zeros({2}, torch::dtype(torch::kLong).device(torch::kCUDA))));
}

// A visitor with a call operator for each alternative.
using Views = std::variant<torch::Tensor, std::vector<torch::Tensor>>;
struct MoveOne {
  torch::Device device;
  Views operator()(const torch::Tensor &t) const { return t.to(device); }
  Views operator()(const std::vector<torch::Tensor> &views) const { return views; }
};
struct MoveAll {
  torch::Device device;
  Views operator()(const torch::Tensor &t) const { return t.to(device); }
  Views operator()(const std::vector<torch::Tensor> &views) const {
    std::vector<torch::Tensor> moved;
    for (const auto &view : views)
      moved.push_back(view.to(device));
    return moved;
  }
};
void visitor_class_bad() {
  Views input = std::vector<torch::Tensor>{torch::rand(3), torch::rand(3)};
  input = std::visit(MoveOne{torch::kCUDA}, input);
  const auto &views = std::get<std::vector<torch::Tensor>>(input);
  auto sum = views[0] + torch::rand(3, torch::kCUDA); // [[device-mixed-op]]
}
void visitor_class_ok() {
  Views input = std::vector<torch::Tensor>{torch::rand(3), torch::rand(3)};
  input = std::visit(MoveAll{torch::kCUDA}, input);
  const auto &views = std::get<std::vector<torch::Tensor>>(input);
  auto sum = views[0] + torch::rand(3, torch::kCUDA);
}

} // namespace

DT_MAIN(visitor_class_bad, visitor_class_ok, visitor_bad, visitor_ok, dtype_options_bad, dtype_options_ok, array_ref_bad, array_ref_ok, target_of_a_kernel_bad,
        target_of_operators_ok, target_of_a_scalar_kernel_bad, assigned_parameter_bad, assigned_parameter_ok, tied_weights_ok)
