// REQUIRES: torch
// RUN: not %device-tidy --checks=device-rank-collision %s %torch | FileCheck %s --implicit-check-not=warning:
#include <cstdlib>
#include <cuda_runtime.h>
#include <torch/torch.h>

struct Channel {
  cudaStream_t stream;
  torch::Device device{torch::kCPU};
};

Channel tooEarly(int local_rank) {
  Channel channel;
  // CHECK: [[@LINE+2]]:3: warning: 'cudaStreamCreateWithFlags' puts this on the GPU that is current at first in every rank of the machine [device-rank-collision]
  // CHECK: [[@LINE+2]]:3: note: the GPU of the rank is made current here: do this first
  cudaStreamCreateWithFlags(&channel.stream, 0);
  cudaSetDevice(local_rank);
  channel.device = torch::Device(torch::kCUDA, local_rank);
  return channel;
}

Channel inTime(int local_rank) {
  Channel channel;
  cudaSetDevice(local_rank);
  cudaStreamCreateWithFlags(&channel.stream, 0);
  return channel;
}

std::vector<cudaStream_t> oneOnEach() {
  int count = 0, before = 0;
  cudaGetDeviceCount(&count);
  cudaGetDevice(&before);
  std::vector<cudaStream_t> streams(count);
  for (int i = 0; i < count; ++i) {
    cudaSetDevice(i);
    cudaStreamCreate(&streams[i]);
  }
  cudaSetDevice(before);
  return streams;
}

int number(const char *name, int otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

torch::Tensor fixed(int size) {
  const int local_rank = number("LOCAL_RANK", 0);
  if (local_rank == 0 && size > 4)
    std::puts("large");
  // CHECK: [[@LINE+2]]:10: warning: 'zeros' puts this on cuda:0 in every rank of the machine [device-rank-collision]
  // CHECK: note: the ranks are told apart here
  return torch::zeros({size}, torch::Device(torch::kCUDA, 0));
}

torch::Tensor ofRank(int size) {
  return torch::zeros({size}, torch::Device(torch::kCUDA, number("LOCAL_RANK", 0)));
}

torch::Tensor onlyOfFirst(int size) {
  if (number("LOCAL_RANK", 0) == 0)
    return torch::zeros({size}, torch::Device(torch::kCUDA, 0));
  return torch::zeros({size});
}

torch::Tensor whereThereIsOne(int size) {
  const int local_rank = number("LOCAL_RANK", 0);
  const int index = torch::cuda::device_count() > 1 ? local_rank : 0;
  return torch::zeros({size}, torch::Device(torch::kCUDA, index));
}

torch::Tensor ofVisible(int size) {
  setenv("CUDA_VISIBLE_DEVICES", std::getenv("LOCAL_RANK"), 1);
  std::printf("%d", number("LOCAL_RANK", 0)); // read again
  return torch::zeros({size}, torch::Device(torch::kCUDA, 0));
}
