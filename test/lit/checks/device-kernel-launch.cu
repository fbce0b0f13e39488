// REQUIRES: torch
// RUN: not %device-tidy --checks=device-kernel-launch %s -- nvcc -gencode arch=compute_70,code=sm_70 --expt-relaxed-constexpr %torch-flags | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <ATen/cuda/CUDAContext.h>

struct Params {
  float *x;
  const float *y;
  float *list[2];
};
template <typename T> __global__ void scale(T *x, const T *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= __nobody_declares_this(y + i); // bodies for the GPU are not read
}
__global__ void all(Params params) {}
template <int N> __global__ void sum(at::PackedTensorAccessor32<float, N, at::RestrictPtrTraits> a) {}

// CHECK: [[@LINE+7]]:{{[0-9]+}}: warning: 'scale' works on cuda and gets the memory of 'y' on cpu [device-kernel-launch]
// CHECK: note: 'y' is created on cpu here
// CHECK: note: move the tensor to that GPU first: 'y = y.to(torch::kCUDA);'
torch::Tensor dispatched(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda());
  auto out = torch::zeros_like(x), y = torch::rand({x.size(0)});
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    scale<scalar_t><<<1, 256, 0, at::cuda::getCurrentCUDAStream()>>>(out.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), 4);
  });
  return out;
}

void structs() {
  auto x = torch::rand({4}), g = torch::rand({4}, torch::kCUDA);
  Params params;
  params.x = g.data_ptr<float>();
  params.y = x.data_ptr<float>() + 1;
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'all' works on cuda and gets the memory of 'x' on cpu
  all<<<1, 4>>>(params);
}

void array() {
  auto x = torch::rand({4}), g = torch::rand({4}, torch::kCUDA);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'all' works on cuda and gets the memory of 'x' on cpu
  all<<<1, 4>>>(Params{g.data_ptr<float>(), g.data_ptr<float>(), {g.data_ptr<float>(), x.data_ptr<float>()}});
}

void accessor() {
  auto x = torch::rand({4, 4});
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'sum' works on cuda and gets the memory of 'x' on cpu
  sum<2><<<1, 4>>>(x.packed_accessor32<float, 2, at::RestrictPtrTraits>());
}

template <typename T> void launch(T *x, const T *y) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' works on cuda and gets the memory of 'y' on cpu
  scale<T><<<1, 4>>>(x, y, 4);
}
void launcher() {
  auto x = torch::rand({4}, torch::kCUDA), y = torch::rand({4});
  launch(x.data_ptr<float>(), y.data_ptr<float>());
}

template <typename Kernel, typename... Arguments> void launchAny(Kernel kernel, Arguments... arguments) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' works on cuda and gets the memory of 'y' on cpu
  kernel<<<1, 4>>>(arguments...);
}
void launcherOfAny() {
  auto y = torch::rand({4});
  launchAny(scale<float>, nullptr, y.data_ptr<float>(), 4);
}

// Nothing is wrong with these.
void pinned() {
  auto a = torch::rand({4}).pin_memory(), b = a.view({2, 2});
  auto c = torch::empty({4}, torch::TensorOptions().pinned_memory(true).device(torch::kCPU));
  auto d = torch::empty_like(torch::rand({4}), torch::TensorOptions().pinned_memory(true));
  auto e = at::empty({4}, torch::kFloat, torch::kStrided, torch::kCPU, true, torch::MemoryFormat::Contiguous);
  scale<<<1, 4>>>(a.data_ptr<float>(), b.data_ptr<float>(), 4);
  scale<<<1, 4>>>(c.data_ptr<float>(), d.data_ptr<float>(), 4);
  scale<<<1, 4>>>(e.data_ptr<float>(), e.data_ptr<float>(), 4);
}
void managed() {
  float *memory;
  cudaMallocManaged(&memory, 16);
  auto x = torch::from_blob(memory, {4});
  scale<<<1, 4>>>(x.data_ptr<float>(), memory, 4);
}
void noElements() {
  auto x = torch::rand({4}, torch::kCUDA), none = torch::empty({0});
  scale<<<1, 4>>>(x.data_ptr<float>(), none.data_ptr<float>(), 4);
}
void asked(torch::Tensor x) {
  auto y = torch::zeros({3}, x.options());
  if (x.is_cuda())
    scale<<<1, 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), 4);
}
