// REQUIRES: torch
// RUN: not %device-tidy --checks=device-lost-index,device-host-access %s -- nvcc %torch-flags | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>

#include <vector>

__global__ void scale(float *x, const float *y, int n) {}

torch::Tensor beforeTheGuard(const torch::Tensor &x) {
  TORCH_CHECK(x.is_cuda());
  auto out = torch::zeros({4}, torch::kCUDA);
  const c10::cuda::CUDAGuard guard(x.device());
  // CHECK: [[@LINE+3]]:3: warning: 'scale' gets 'out', made before the GPU it works on was current [device-lost-index]
  // CHECK: [[@LINE-3]]:14: note: 'out' is created on cuda here
  // CHECK: note: create it with the index of the GPU: with the options of the other tensors, or after the guard
  scale<<<1, 4>>>(out.data_ptr<float>(), x.data_ptr<float>(), 4);
  return out;
}

torch::Tensor afterTheGuard(const torch::Tensor &x) {
  TORCH_CHECK(x.is_cuda());
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::zeros({4}, torch::kCUDA);
  scale<<<1, 4>>>(out.data_ptr<float>(), x.data_ptr<float>(), 4);
  return out;
}

torch::Tensor likeTheOther(const torch::Tensor &x) {
  TORCH_CHECK(x.is_cuda());
  auto out = torch::zeros({4}, x.options());
  const c10::cuda::CUDAGuard guard(x.device());
  scale<<<1, 4>>>(out.data_ptr<float>(), x.data_ptr<float>(), 4);
  return out;
}

torch::Device last() {
  const auto count = static_cast<c10::DeviceIndex>(torch::cuda::device_count());
  // CHECK: [[@LINE+2]]:10: warning: 'Device' gets the number of GPUs as the index of one [device-lost-index]
  // CHECK: note: indices begin at 0: that of the last GPU is one less
  return torch::Device(torch::kCUDA, count);
}

torch::Device lastByCuda() {
  int count = 0;
  cudaGetDeviceCount(&count);
  return torch::Device(torch::kCUDA, count - 1);
}

void time(const torch::Tensor &host, torch::Device device) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  const c10::cuda::CUDAGuard guard(device);
  cudaEventCreate(&stop);
  const auto stream = at::cuda::getCurrentCUDAStream();
  // CHECK: [[@LINE+1]]:3: warning: 'cudaEventRecord' gets 'start', made before the GPU it works on was current
  cudaEventRecord(start, stream);
  auto copy = host.to(device);
  cudaEventRecord(stop, stream);
}

void copies(const std::vector<float> &values) {
  auto there = torch::zeros({4}, torch::kCUDA), here = torch::zeros({4});
  cudaMemcpy(there.data_ptr<float>(), here.data_ptr<float>(), 16, cudaMemcpyHostToDevice);
  cudaMemcpy(here.data_ptr<float>(), there.data_ptr<float>(), 16, cudaMemcpyDeviceToHost);
  cudaMemcpy(there.data_ptr<float>(), values.data(), 16, cudaMemcpyHostToDevice);
  // CHECK: [[@LINE+1]]:3: warning: 'cudaMemcpyAsync' works on memory of cpu and gets that of 'there' on cuda{{.*}} [device-host-access]
  cudaMemcpyAsync(there.data_ptr<float>(), there.data_ptr<float>(), 16, cudaMemcpyHostToDevice, nullptr);
}

// What a constructor makes is on the GPU that is current there.
#include <cublas_v2.h>
class Engine {
public:
  Engine() {
    cublasCreate(&handle);
    cudaStreamCreate(&stream);
  }
  void multiply(const torch::Tensor &x) {
    const c10::cuda::CUDAGuard guard(x.device());
    const float one = 1;
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'cublasSaxpy{{.*}}' gets 'handle', made before the GPU it works on was current [device-lost-index]
    cublasSaxpy(handle, 4, &one, x.data_ptr<float>(), 1, x.data_ptr<float>(), 1);
  }
  void launch(const torch::Tensor &x) {
    const c10::cuda::CUDAGuard guard(x.device());
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '<<<>>>' gets 'stream', made before the GPU it works on was current [device-lost-index]
    scale<<<1, 4, 0, stream>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }
  void launchOnTheCurrent(const torch::Tensor &x) {
    const c10::cuda::CUDAGuard guard(x.device());
    scale<<<1, 4, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }

private:
  cublasHandle_t handle;
  cudaStream_t stream;
};

void streamBeforeTheGuard(const torch::Tensor &x) {
  const auto stream = at::cuda::getCurrentCUDAStream();
  const c10::cuda::CUDAGuard guard(x.device());
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '<<<>>>' gets 'stream', made before the GPU it works on was current [device-lost-index]
  scale<<<1, 4, 0, stream>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

class EngineOfDevice {
public:
  explicit EngineOfDevice(int gpu) {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu));
    cudaStreamCreate(&stream);
    index = gpu;
  }
  void launch(const torch::Tensor &x) {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(index));
    scale<<<1, 4, 0, stream>>>(nullptr, nullptr, 4);
  }

private:
  int index = 0;
  cudaStream_t stream;
};
