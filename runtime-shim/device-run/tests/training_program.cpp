// A small training step, and what can go wrong with its devices. The test finds lines by their comments.
#include <torch/torch.h>

#include <iostream>
#include <stdexcept>
#include <string>

namespace {

torch::Tensor lossOf(torch::nn::Sequential &model, const torch::Tensor &input, const torch::Tensor &factor,
                     const torch::Tensor &target) {
  torch::Tensor output = model->forward(input) * factor;       // the forward pass
  return torch::nn::functional::cross_entropy(output, target); // the loss
}

int train(const std::string &mode) {
  torch::manual_seed(0);
  const torch::Device device(torch::kCUDA, 0);
  torch::nn::Sequential model(torch::nn::Linear(4, 16), torch::nn::ReLU(), torch::nn::Linear(16, 3));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5));
  torch::Tensor target = torch::randint(3, {32}, torch::kLong); // the labels
  if (mode == "discarded")
    target.to(device); // the move without effect
  else if (mode != "forgotten")
    target = target.to(device); // the move of the labels
  torch::Tensor input = torch::randn({32, 4}, device), factor = torch::ones({3}, device);
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    torch::Tensor loss = lossOf(model, input, factor, target); // the step
    optimizer.zero_grad();
    if (mode == "too early")
      factor.set_data(factor.cpu()); // the move of what backward() needs
    loss.backward();
    optimizer.step();
    last = loss.item<double>(); // reads the loss
    first = step == 0 ? last : first;
  }
  std::cout << "loss " << first << " -> " << last << std::endl;
  return last < first ? 0 : 1;
}

// Does without the device, and fails for another reason.
[[noreturn]] void carryOn() {
  try {
    std::cout << torch::ones({2}, torch::kCUDA) + torch::ones({2}) << std::endl; // the caught error
  } catch (const c10::Error &) {
    std::cout << "going on" << std::endl;
  }
  throw std::runtime_error("no such file: data.bin");
}

// Needs no GPU: every build has the meta device.
torch::Tensor difference() {
  torch::Tensor weights = torch::ones({3}).to(torch::kMeta); // the weights
  torch::Tensor mean = torch::rand({3});                     // the mean
  return weights - mean;                                     // the difference
}

} // namespace

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "ordinal")
      std::cout << torch::ones({2}, torch::Device(torch::kCUDA, 2)) << std::endl;
    if (mode == "caught")
      carryOn();
    if (mode == "meta")
      std::cout << difference() << std::endl;
    return train(mode);
  } catch (const c10::Error &error) {
    std::cerr << error.what_without_backtrace() << std::endl;
    return 3;
  }
}
