// The training loop was adapted to the loader, the evaluation loop was not.
#include "../../cases.h"
#include "loader.h"

static torch::nn::Conv2d makeNet(torch::Device device) {
  torch::nn::Conv2d net(torch::nn::Conv2dOptions(3, 1, 1));
  net->to(device);
  return net;
}

void train_moves_the_depth_ok() {
  torch::Device device(torch::kCUDA);
  auto net = makeNet(device);
  vision::FrameLoader loader(device);
  auto sample = loader.next();
  auto target = sample.depth.to(device);
  auto predicted = net(sample.image.unsqueeze(0)).squeeze(0);
  torch::l1_loss(predicted, target).backward();
}

void evaluation_forgets_the_depth_bad() {
  torch::Device device(torch::kCUDA);
  auto net = makeNet(device);
  vision::FrameLoader loader(device);
  auto sample = loader.next();
  auto predicted = net(sample.image.unsqueeze(0)).squeeze(0);
  auto error = torch::l1_loss(predicted, sample.depth); // [[device-loss-input]]
  TORCH_CHECK(error.defined());
}

void evaluation_on_cpu_ok() {
  auto net = makeNet(torch::kCPU);
  vision::FrameLoader loader(torch::kCPU);
  auto sample = loader.next();
  auto predicted = net(sample.image.unsqueeze(0)).squeeze(0);
  auto error = torch::l1_loss(predicted, sample.depth);
  TORCH_CHECK(error.defined());
}

DT_MAIN(train_moves_the_depth_ok, evaluation_forgets_the_depth_bad, evaluation_on_cpu_ok)
