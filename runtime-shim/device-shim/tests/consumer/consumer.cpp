// Includes everything, without LibTorch's own umbrella header, and trains one step.
#include <device_shim/device_shim.h>

#include <torch/optim/sgd.h>

#include <iostream>

int main() {
  auto ranks = device_shim::init_distributed();
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::Linear(8, 2));
  net->to(ranks->device());
  device_shim::DistributedDataParallel<torch::nn::Sequential> model(net, ranks);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  model.forward(torch::ones({3, 4}, ranks->device())).sum().backward();
  optimizer.step();
  std::cout << "rank " << ranks->rank() << " of " << ranks->size() << " on " << ranks->device() << std::endl;
}
