// A program of its own: distributed training without a map.
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include <cstdlib>

int main() {
  c10d::TCPStoreOptions options;
  options.port = 29501;
  options.numWorkers = 2;
  const char *text = std::getenv("RANK");
  const int rank = text ? std::atoi(text) : 0;
  options.isServer = rank == 0;
  auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(rank));
  torch::nn::Linear net(4, 1);
  net->to(device);
  auto loss = torch::mse_loss(net(torch::rand({2, 4}, device)), torch::zeros({2, 1}, device));
  loss.backward();
  return 0;
}
