// REQUIRES: torch
// RUN: not %device-tidy --checks=device-map-distributed %s %torch -DUSE_C10D_GLOO -DSPREAD \
// RUN:   | FileCheck %s --implicit-check-not=warning:
// RUN: %device-tidy --checks=device-map-distributed %s %torch -DUSE_C10D_GLOO | count 0
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/torch.h>

#include <string>
#include <vector>

std::vector<torch::nn::Linear> loadLayers(int count, int rank) {
  std::vector<torch::nn::Linear> layers;
  const int devices = static_cast<int>(torch::cuda::device_count());
  for (int i = 0; i < count; ++i) {
    torch::nn::Linear layer(8, 8);
#ifdef SPREAD
    // CHECK: :[[@LINE+1]]:{{.*}} warning: placement map {{.*}} [device-map-distributed]
    layer->to(torch::Device(torch::kCUDA, i % devices));
#else
    layer->to(torch::Device(torch::kCUDA, rank % devices));
#endif
    layers.push_back(layer);
  }
  return layers;
}

int main(int argc, char **argv) {
  const int rank = std::stoi(argv[1]);
  auto store = c10::make_intrusive<c10d::FileStore>("/tmp/device-tidy-store", 2);
  // CHECK: :[[@LINE+1]]:{{.*}} note: distributed training is initialised here
  c10d::ProcessGroupGloo group(store, rank, 2);
  auto layers = loadLayers(4, rank);
  return static_cast<int>(layers.size()) - 4;
}
