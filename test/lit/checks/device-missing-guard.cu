// REQUIRES: torch
// RUN: not %device-tidy --checks=device-missing-guard,device-host-access %s -- nvcc %torch-flags | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <c10/cuda/CUDAGuard.h>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuco/static_map.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>

__global__ void scale(float *x, const float *y, int n) {}
template <int N> __global__ void sum(at::PackedTensorAccessor32<float, N, at::RestrictPtrTraits> a) {}

torch::Tensor second() { return torch::rand({4}, torch::Device(torch::kCUDA, 1)); }

// CHECK: [[@LINE+3]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU and works on 'x' on x.device(), but no guard makes that GPU current [device-missing-guard]
// CHECK: note: make that GPU current first: 'const c10::cuda::CUDAGuard guard(x.device());'
void fromOutside(torch::Tensor x) {
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  scale<<<2, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4); // one finding for a function
}

torch::Tensor checked(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda());
  auto y = torch::zeros_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'sum' runs on the current GPU and works on 'y' on cuda:i, but no guard makes that GPU current
    sum<2><<<1, 4, 0, at::cuda::getCurrentCUDAStream()>>>(y.packed_accessor32<float, 2, at::RestrictPtrTraits>());
  });
  return y;
}

// The helper cannot know the device of its pointers: its caller is to make it current.
void launchOn(float *x, int n) { scale<<<1, n>>>(x, x, n); }
void throughHelper(torch::Tensor x) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU and works on 'x' on x.device(), but no guard makes that GPU current
  launchOn(x.data_ptr<float>(), 4);
}

void guardOfNothing(torch::Tensor x) {
  c10::cuda::OptionalCUDAGuard guard;
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

void afterTheGuard(torch::Tensor x) {
  {
    const c10::cuda::CUDAGuard guard(x.device());
    scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

void onOnePath(torch::Tensor x, bool large) {
  c10::cuda::OptionalCUDAGuard guard;
  if (large)
    guard.set_device(x.device());
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

void guardOfTheHost(torch::Tensor from, torch::Tensor x) {
  const c10::OptionalDeviceGuard guard(at::device_of(from));
  TORCH_CHECK(from.is_cpu());
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

// The guard of one that may be on the CPU, of two between which memory is copied.
void copyBetween(torch::Tensor &from, torch::Tensor &to) {
  const torch::Device source = from.device(), target = to.device();
  cudaMemcpyKind kind;
  if (source.is_cuda() && target.is_cuda())
    kind = cudaMemcpyDeviceToDevice;
  else if (source.is_cuda() && target.is_cpu())
    kind = cudaMemcpyDeviceToHost;
  else if (source.is_cpu() && target.is_cuda())
    kind = cudaMemcpyHostToDevice;
  else
    TORCH_CHECK(false, "both on the CPU");
  const at::cuda::OptionalCUDAGuard guard(source);
  char *read = static_cast<char *>(from.data_ptr()), *written = static_cast<char *>(to.data_ptr());
  const int64_t half = from.nbytes() / 2;
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'cudaMemcpyAsync' runs on the current GPU and works on 'to' on
  cudaMemcpyAsync(written + half, read + half, half, kind, at::cuda::getCurrentCUDAStream());
}

void copyWithRightGuard(torch::Tensor &from, torch::Tensor &to) {
  const bool isUp = from.is_cpu();
  TORCH_CHECK(from.is_cuda() || to.is_cuda());
  const at::cuda::OptionalCUDAGuard guard(from.is_cuda() ? from.device() : to.device());
  cudaMemcpyAsync(to.data_ptr(), from.data_ptr(), from.nbytes(), isUp ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                  at::cuda::getCurrentCUDAStream());
}

void wrongGuard() {
  auto x = second();
  c10::cuda::CUDAGuard guard(0);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on cuda:0 and works on 'x' on cuda:1, but no guard makes that GPU current
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

// CHECK: [[@LINE+3]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU and works on 'x' on device, but no guard makes that GPU current
void chosen(torch::Device device) {
  auto x = torch::rand({4}, device);
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

// As formatters write it that know no CUDA.
void tornApart(torch::Tensor x) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU
  scale << <1, 4, 0, nullptr>> >(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}

void inAThread(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device()); // of this thread alone
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU
  std::thread worker([x] { scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4); });
  worker.join();
}

void byLibrary(torch::Tensor x, cublasHandle_t handle) {
  const float one = 1;
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'cublasSaxpy' runs on the current GPU
  cublasSaxpy(handle, 4, &one, x.data_ptr<float>(), 1, x.data_ptr<float>(), 1);
}

struct Params {
  float *x;
  int n;
};
void packed(torch::Tensor x) {
  Params params{x.data_ptr<float>(), 4};
  void *arguments[] = {&params};
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU and works on 'x' on x.device(), but no guard makes that GPU current
  cudaLaunchKernel((const void *)scale, dim3(1), dim3(4), arguments, 0, at::cuda::getCurrentCUDAStream());
}

void configured(torch::Tensor x) {
  cudaLaunchConfig_t configuration = {};
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU
  cudaLaunchKernelEx(&configuration, scale, x.data_ptr<float>(), static_cast<const float *>(nullptr), 4);
}

// What is given a stream works on it.
void runUnseen(const Params &params, cudaStream_t stream);
void byUnseen(torch::Tensor x) {
  Params params{x.data_ptr<float>(), 4};
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'runUnseen' runs on the current GPU
  runUnseen(params, at::cuda::getCurrentCUDAStream());
}

template <typename F> __global__ void runKernel(int n, F f) { f(0); }
template <typename F> void evaluate(int n, cudaStream_t stream, F f) { runKernel<<<1, n, 0, stream>>>(n, f); }
void byClosure(torch::Tensor x) {
  float *data = x.data_ptr<float>();
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'runKernel' runs on the current GPU and works on 'x' on x.device(), but no guard makes that GPU current
  evaluate(4, at::cuda::getCurrentCUDAStream(), [=] __device__(int i) { data[i] = 0; });
}

void byIterator(torch::Tensor x, torch::Tensor y) {
  TORCH_CHECK(x.is_cuda());
  auto iterator = at::TensorIteratorConfig().add_output(y).check_all_same_dtype(false).add_input(x).build();
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'gpu_kernel' runs on the current GPU and works on 'iterator' on y.device()
  at::native::gpu_kernel(iterator, [] __device__(float a) -> float { return a; });
}

// Whatever is called, the parameters of a launch have a stream to work on.
struct Launch {
  cudaStream_t stream;
  float *x;
};
void byUnknown(torch::Tensor x, std::function<void(Launch &)> launcher) {
  TORCH_CHECK(x.is_cuda());
  Launch launch{at::cuda::getCurrentCUDAStream(), x.data_ptr<float>()};
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'launcher' runs on the current GPU and works on 'x' on cuda:i
  launcher(launch);
}

// What the library writes through the pointer is not known.
void byHeuristic(torch::Tensor x, cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                 cublasLtMatmulPreference_t preference, cublasLtMatrixLayout_t layout) {
  int count = 0;
  cublasLtMatmulHeuristicResult_t result;
  cublasLtMatmulAlgoGetHeuristic(handle, operation, layout, layout, layout, layout, preference, 1, &result, &count);
  if (count == 0)
    return;
  const float one = 1;
  float *data = x.data_ptr<float>();
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'cublasLtMatmul' runs on the current GPU
  cublasLtMatmul(handle, operation, &one, data, layout, data, layout, &one, data, layout, data, layout, &result.algo,
                 nullptr, 0, at::cuda::getCurrentCUDAStream());
}

void byAttributes(torch::Tensor x) {
  cudaPointerAttributes attributes;
  const cudaError_t result = cudaPointerGetAttributes(&attributes, x.data_ptr<float>());
  if (result != cudaSuccess || attributes.devicePointer == nullptr)
    return;
  auto *data = static_cast<float *>(attributes.devicePointer);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU and works on 'x' on
  scale<<<1, 4>>>(data, data, 4);
}
void byThrust(torch::Tensor x, torch::Tensor y) {
  auto pairs = thrust::make_zip_iterator(thrust::make_tuple(x.data_ptr<float>(), y.data_ptr<float>()));
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'sort' runs on the current GPU and works on 'x' on x.device()
  thrust::sort(thrust::cuda::par.on(at::cuda::getCurrentCUDAStream()), pairs, pairs + x.numel());
}
void byHashMap(torch::Tensor x, cuco::static_map<float, float> &map) {
  float *data = x.data_ptr<float>();
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'find' runs on the current GPU and works on 'x' on x.device()
  map.find(data, data + x.numel(), data);
}

// What is exported needs a guard of its own, although another function of the program calls it.
void exported(torch::Tensor x) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU and works on 'x' on x.device()
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}
void callsExported(torch::Tensor x) { exported(x.t()); }
TORCH_LIBRARY(lit, m) {
  m.def("exported", exported);
  m.def("calls_exported", callsExported);
}

// Nothing is wrong with these.
void inAKernel(torch::Tensor x) { // what a kernel calls is not run on the host
  const c10::cuda::CUDAGuard guard(x.device());
  float *data = x.data_ptr<float>();
  evaluate(4, at::cuda::getCurrentCUDAStream(), [=] __device__(int i) { data[i] = 0; });
  evaluate(4, at::cuda::getCurrentCUDAStream(), [=] __host__ __device__(int i) { data[i] = 0; });
}
void onTheHost(torch::Tensor x, torch::Tensor y) {
  thrust::sort(thrust::host, x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
  thrust::sort(y.data_ptr<float>(), y.data_ptr<float>() + y.numel());
}
constexpr auto noStream = (cudaStream_t)(~size_t(0));
float onTheHost(torch::Tensor x) { // no GPU has such a stream
  TORCH_CHECK(x.is_cuda());
  return c10::cuda::getCurrentCUDAStream(x.get_device()).stream() == noStream ? *x.data_ptr<float>() : 0;
}
void onTheCurrent() {
  auto x = torch::rand({4}, torch::kCUDA);
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}
void inTheCaller(torch::Tensor x) { scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4); }
void caller(torch::Tensor x) {
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  inTheCaller(x);
  auto y = torch::empty_like(x);
  inTheCaller(y);
}
void byIndex(torch::Tensor x) {
  cudaSetDevice(x.get_device());
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}
void oneForAll(torch::Tensor x, torch::Tensor y) { // tensors of a call are on one device
  TORCH_CHECK(x.is_cuda() && y.is_cuda());
  const c10::cuda::CUDAGuard guard{x.device()};
  scale<<<1, 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), 4);
}
void pointers(float *x, int n) { scale<<<1, n>>>(x, x, n); }
struct Holder {
  explicit Holder(const torch::Tensor &x) : guard(x.device()) {}
  c10::cuda::CUDAGuard guard;
};
void guarded(torch::Tensor x) {
  {
    std::optional<c10::cuda::CUDAGuard> guard;
    guard.emplace(x.device());
    scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }
  {
    const auto guard = std::make_unique<c10::cuda::CUDAGuard>(x.device());
    scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }
  {
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(false, x.get_device()));
    scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }
  {
    const Holder holder(x);
    scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }
  {
    const c10::DeviceGuard guard(x.device());
    scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
  }
}
void unseenWithGuard(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device());
  Params params{x.data_ptr<float>(), 4};
  void *arguments[] = {&params};
  cudaLaunchKernel((const void *)scale, dim3(1), dim3(4), arguments, 0, at::cuda::getCurrentCUDAStream());
  runUnseen(params, at::cuda::getCurrentCUDAStream());
}
void fillUnseen(const float *values, int n, cudaStream_t stream);
void ofTheHost() {
  const auto values = torch::rand({4});
  fillUnseen(values.data_ptr<float>(), 4, at::cuda::getCurrentCUDAStream());
}

// A guard of one's own, which leaves the device alone that is current already.
class OwnGuard {
public:
  explicit OwnGuard(torch::Device device) {
    if (!device.is_cuda())
      return;
    cudaGetDevice(&before);
    if (before != device.index())
      cudaSetDevice(device.index());
  }
  ~OwnGuard() {
    if (before != -1)
      cudaSetDevice(before);
  }

private:
  int before = -1;
};
void withOwnGuard(torch::Tensor x) {
  const OwnGuard guard(x.device());
  scale<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>(), 4);
}
