// Data sets, loaders, transforms: batches come out on the device of the stored tensors, normally the host.
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <vector>

#include "../cases.h"

class ToyDigits : public torch::data::datasets::Dataset<ToyDigits> {
public:
  explicit ToyDigits(size_t n, torch::Device where = torch::kCPU)
      : images_(torch::rand({static_cast<int64_t>(n), 1, 8, 8}, where)),
        targets_(torch::randint(10, {static_cast<int64_t>(n)}, torch::dtype(torch::kLong).device(where))) {}

  torch::data::Example<> get(size_t index) override { return {images_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return images_.size(0); }

private:
  torch::Tensor images_, targets_;
};

struct ConvNet : torch::nn::Module {
  ConvNet()
      : conv(torch::nn::Conv2dOptions(1, 4, /*kernel_size=*/3)),
        fc(4 * 6 * 6, 10) {
    register_module("conv", conv);
    register_module("fc", fc);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv->forward(x));
    x = x.view({-1, 4 * 6 * 6});
    return torch::log_softmax(fc->forward(x), /*dim=*/1);
  }
  torch::nn::Conv2d conv;
  torch::nn::Linear fc;
};

template <typename DataLoader>
void train(ConvNet &model, torch::Device device, DataLoader &loader, torch::optim::Optimizer &optimizer) {
  model.train();
  size_t batch_idx = 0;
  for (auto &batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    AT_ASSERT(!std::isnan(loss.template item<float>()));
    loss.backward();
    optimizer.step();
    if (batch_idx++ % 10 == 0)
      std::cout << "loss: " << loss.template item<float>() << std::endl;
  }
}

template <typename DataLoader>
void test_targets_forgotten(ConvNet &model, torch::Device device, DataLoader &loader) {
  torch::NoGradGuard no_grad;
  model.eval();
  double test_loss = 0;
  int32_t correct = 0;
  for (const auto &batch : loader) {
    auto data = batch.data.to(device), targets = batch.target;
    auto output = model.forward(data);
    test_loss += torch::nll_loss( // [[device-loss-input]]
                     output, targets, /*weight=*/{}, torch::Reduction::Sum)
                     .template item<float>();
    auto pred = output.argmax(1).cpu();
    correct += pred.eq(targets).sum().template item<int64_t>();
  }
  std::cout << test_loss << ' ' << correct << std::endl;
}

template <typename DataLoader> void test(ConvNet &model, torch::Device device, DataLoader &loader) {
  torch::NoGradGuard no_grad;
  model.eval();
  double test_loss = 0;
  int32_t correct = 0;
  for (const auto &batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum);
    test_loss += loss.template item<float>();
    auto pred = output.argmax(1);
    correct += pred.eq(targets).sum().template item<int64_t>();
  }
  std::cout << test_loss << ' ' << correct << std::endl;
}

template <typename DataLoader>
void test_prediction_on_host(ConvNet &model, torch::Device device, DataLoader &loader) {
  torch::NoGradGuard no_grad;
  int64_t correct = 0;
  for (const auto &batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto pred = model.forward(data).argmax(1).to(torch::kCPU);
    correct += pred.eq(targets).sum().template item<int64_t>(); // [[device-mixed-op]]
  }
  std::cout << correct << std::endl;
}

static auto makeLoader() {
  return torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      ToyDigits(8)
          .map(torch::data::transforms::Normalize<>(0.13, 0.3))
          .map(torch::data::transforms::Stack<>()),
      /*batch_size=*/4);
}

void mnist_train_ok() {
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  ConvNet model;
  model.to(device);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  auto loader = makeLoader();
  train(model, device, *loader, optimizer);
}

void mnist_test_targets_bad() {
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  ConvNet model;
  model.to(device);
  auto loader = makeLoader();
  test_targets_forgotten(model, device, *loader);
}

void mnist_test_ok() {
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  ConvNet model;
  model.to(device);
  auto loader = makeLoader();
  test(model, device, *loader);
}

void mnist_prediction_on_host_bad() {
  torch::Device device(torch::kCUDA);
  ConvNet model;
  model.to(device);
  auto loader = makeLoader();
  test_prediction_on_host(model, device, *loader);
}

// The data set itself lives on the GPU: its batches need no move.
void dataset_on_the_gpu_ok() {
  torch::nn::Linear head(64, 10);
  head->to(torch::kCUDA);
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      ToyDigits(8, torch::kCUDA).map(torch::data::transforms::Stack<>()), 4);
  for (auto &batch : *loader) {
    auto logits = head->forward(batch.data.flatten(1));
    torch::nn::functional::cross_entropy(logits, batch.target).backward();
  }
}

void dataset_on_the_host_bad() {
  torch::nn::Linear head(64, 10);
  head->to(torch::kCUDA);
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      ToyDigits(8).map(torch::data::transforms::Stack<>()), 4);
  for (auto &batch : *loader) {
    auto logits = head->forward(batch.data.flatten(1)); // [[device-mixed-op]]
    torch::nn::functional::cross_entropy(logits, batch.target).backward();
  }
}

DT_MAIN(mnist_train_ok, mnist_test_targets_bad, mnist_test_ok, mnist_prediction_on_host_bad,
        dataset_on_the_gpu_ok, dataset_on_the_host_bad)
