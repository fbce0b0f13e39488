#include <torch/torch.h>

struct Net : torch::nn::Module {
  Net() { fc = register_module("fc", torch::nn::Linear(784, 10)); }
  torch::Tensor forward(torch::Tensor x) { return fc->forward(x); }
  torch::nn::Linear fc{nullptr};
};

void train_epoch(int batches) {
  const torch::Device device(torch::kCUDA, 0);
  auto model = std::make_shared<Net>();
  model->to(device);
  auto weights = torch::ones({10});
  for (int i = 0; i < batches; ++i) {
    auto images = torch::randn({64, 784}).to(device);
    auto labels = torch::randint(10, {64}, torch::kLong);
    auto scores = model->forward(images);
    auto loss = torch::nn::functional::cross_entropy(scores, labels);
    loss.backward();
  }
}

int main() { train_epoch(10); }
