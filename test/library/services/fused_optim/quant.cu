#include "ops.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace fused {

namespace {

template <typename T>
__global__ void absmax_kernel(const T* x, float* partial, float* out, int64_t group, int64_t n) {
  const int64_t i = blockIdx.x * group + threadIdx.x;
  if (i < n)
    partial[i] = x[i] < T(0) ? -x[i] : x[i];
  out[blockIdx.x] = partial[blockIdx.x * group];
}

__global__ void quantize_kernel(const float* x, const float* absmax, int8_t* codes, int64_t group, int64_t n) {
  const int64_t i = blockIdx.x * group + threadIdx.x;
  if (i < n)
    codes[i] = static_cast<int8_t>(x[i] / absmax[blockIdx.x] * 127);
}

__global__ void dequantize_kernel(const int8_t* codes, const float* absmax, float* x, int64_t group, int64_t n) {
  const int64_t i = blockIdx.x * group + threadIdx.x;
  if (i < n)
    x[i] = codes[i] * absmax[blockIdx.x] / 127;
}

__global__ void rowmax_kernel(const float* weight, float* scales, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i)
    if (weight[blockIdx.x * columns + i] > scales[blockIdx.x])
      scales[blockIdx.x] = weight[blockIdx.x * columns + i];
}

// Grows to the largest tensor that was reduced so far.
float* reduce_workspace(int64_t count) {
  static at::Tensor workspace;
  if (!workspace.defined() || workspace.numel() < count)
    workspace = at::empty({count}, at::TensorOptions(at::kCUDA).dtype(at::kFloat)); // [[device-lost-index]]
  return workspace.data_ptr<float>();
}

void check_groups(const at::Tensor& x, int64_t group) {
  TORCH_CHECK(x.is_cuda(), "expected a CUDA tensor");
  TORCH_CHECK(x.is_contiguous() && x.numel() % group == 0);
}

} // namespace

at::Tensor group_absmax(const at::Tensor& x, int64_t group) {
  check_groups(x, group);
  float* partial = reduce_workspace(x.numel());
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t groups = x.numel() / group;
  auto out = at::empty({groups}, x.options().dtype(at::kFloat));
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "group_absmax", [&] {
    absmax_kernel<scalar_t><<<groups, group, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), partial, out.data_ptr<float>(), group, x.numel());
  });
  return out;
}

at::Tensor quantize_groups(const at::Tensor& x, const at::Tensor& absmax, int64_t group) {
  check_groups(x, group);
  const c10::cuda::CUDAGuard guard(x.device());
  const auto scales = absmax.to(x.device(), at::kFloat);
  auto codes = at::empty(x.sizes(), at::TensorOptions(at::kCUDA).dtype(at::kChar));
  quantize_kernel<<<scales.numel(), group>>>(x.data_ptr<float>(), scales.data_ptr<float>(), codes.data_ptr<int8_t>(),
                                             group, x.numel());
  return codes;
}

at::Tensor dequantize_groups(const at::Tensor& codes, const at::Tensor& absmax, int64_t group) {
  check_groups(codes, group);
  TORCH_CHECK(absmax.device() == codes.device());
  const int previous = c10::cuda::current_device();
  c10::cuda::set_device(codes.get_device());
  auto x = at::empty(codes.sizes(), codes.options().dtype(at::kFloat));
  dequantize_kernel<<<absmax.numel(), group>>>(codes.data_ptr<int8_t>(), absmax.data_ptr<float>(), x.data_ptr<float>(),
                                               group, x.numel());
  c10::cuda::set_device(previous);
  return x;
}

at::Tensor int8_scales(const at::Tensor& weight) {
  TORCH_CHECK(weight.is_cuda() && weight.dim() == 2);
  const c10::cuda::CUDAGuard guard(weight.device());
  auto scales = at::zeros({weight.size(0)}, at::TensorOptions(weight.device()).dtype(at::kFloat));
  rowmax_kernel<<<weight.size(0), 1>>>(weight.data_ptr<float>(), scales.data_ptr<float>(), weight.size(1));
  return scales / 127;
}

// `mapped` is pinned: the host polls it while the kernel runs.
void write_statistics(const at::Tensor& x, at::Tensor& mapped) {
  TORCH_CHECK(x.is_cuda() && x.dim() == 2);
  const c10::cuda::CUDAGuard guard(x.device());
  if (!mapped.defined())
    mapped = at::zeros({x.size(0)}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  rowmax_kernel<<<x.size(0), 1>>>(x.data_ptr<float>(), mapped.data_ptr<float>(), x.size(1));
}

} // namespace fused
