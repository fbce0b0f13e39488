// A program that knows no device at all: bare factories, plain members, unmoved losses. Nothing to report.
#include "../cases.h"
#include <torch/torch.h>

#include <vector>

struct CausalMaskNetImpl : torch::nn::Module {
  explicit CausalMaskNetImpl(int64_t dim)
      : fc(register_module("fc", torch::nn::Linear(dim, dim))), scale(torch::full({dim}, 0.5)) {
    head = torch::nn::Linear(dim, 2);
    for (int i = 0; i < 2; ++i)
      extra.push_back(torch::nn::Linear(dim, dim));
  }
  torch::Tensor forward(torch::Tensor x) {
    auto mask = torch::tril(torch::ones({x.size(0), x.size(0)}));
    x = mask.mm(fc(x)) * scale;
    for (auto &layer : extra)
      x = layer(x);
    return head(x + torch::randn(x.sizes()));
  }
  torch::nn::Linear fc, head{nullptr};
  std::vector<torch::nn::Linear> extra;
  torch::Tensor scale;
};
TORCH_MODULE(CausalMaskNet);

static void train_on_cpu_ok() {
  CausalMaskNet net(4);
  torch::nn::CrossEntropyLoss criterion(
      torch::nn::CrossEntropyLossOptions().weight(torch::tensor({1.0f, 3.0f})));
  torch::optim::SGD sgd(net->parameters(), 0.1);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto x = torch::rand({3, 4});
    auto y = torch::tensor({0, 1, 1}, torch::kLong);
    sgd.zero_grad();
    criterion(net(x), y).backward();
    sgd.step();
  }
}

static void evaluate_on_cpu_ok() {
  CausalMaskNet net(4);
  torch::NoGradGuard off;
  net->eval();
  auto predicted = net(torch::rand({3, 4})).argmax(1);
  auto correct = predicted.eq(torch::zeros({3}, torch::kLong)).sum().item<int64_t>();
  TORCH_CHECK(correct <= 3);
}

static torch::Tensor moving_average(const torch::Tensor &series, int64_t window) {
  auto kernel = torch::ones({1, 1, window}) / window;
  return torch::conv1d(series.view({1, 1, -1}), kernel).flatten();
}

static void series_on_cpu_ok() { moving_average(torch::rand({10}), 3); }

DT_MAIN(train_on_cpu_ok, evaluate_on_cpu_ok, series_on_cpu_ok)
