#include "fused.h"
#include "multi_tensor_apply.cuh"

namespace fusedopt {
namespace {

template <typename T> struct ScaleFunctor {
  __device__ void operator()(int64_t chunk, volatile int *noop, TensorListMetadata<2> &tl, float scale) const {
    if (blockIdx.x >= static_cast<unsigned>(tl.count))
      return;
    const T *in = static_cast<const T *>(tl.addresses[0][blockIdx.x]);
    T *out = static_cast<T *>(tl.addresses[1][blockIdx.x]);
    for (int64_t i = threadIdx.x; i < tl.sizes[blockIdx.x]; i += blockDim.x)
      out[i] = static_cast<T>(in[i] * scale);
  }
};

template <typename T> struct AxpbyFunctor {
  __device__ void operator()(int64_t chunk, volatile int *noop, TensorListMetadata<3> &tl, float a, float b) const {
    const T *x = static_cast<const T *>(tl.addresses[0][blockIdx.x]);
    const T *y = static_cast<const T *>(tl.addresses[1][blockIdx.x]);
    T *out = static_cast<T *>(tl.addresses[2][blockIdx.x]);
    for (int64_t i = threadIdx.x; i < tl.sizes[blockIdx.x]; i += blockDim.x)
      out[i] = static_cast<T>(a * x[i] + b * y[i]);
  }
};

__global__ void sum_squares_kernel(const float *__restrict__ in, float *__restrict__ partial, int slot, int64_t n) {
  float sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    sum += in[i] * in[i];
  atomicAdd(partial + slot, sum);
}

__global__ void max_abs_kernel(const float *__restrict__ in, float *__restrict__ partial, int slot, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    partial[slot] = in[i] > partial[slot] ? in[i] : partial[slot];
}

__global__ void sgd_kernel(float *param, const float *grad, float *momentum, float lr, float wd, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    momentum[i] = 0.9f * momentum[i] + grad[i] + wd * param[i];
    param[i] -= lr * momentum[i];
  }
}

__global__ void sgd_capturable_kernel(float *param, const float *grad, float *momentum, const float *lr, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    param[i] -= *lr * (momentum[i] = 0.9f * momentum[i] + grad[i]);
}

template <typename scalar_t>
__global__ void adam_kernel(scalar_t *param, const scalar_t *grad, scalar_t *m, scalar_t *v, const float *corrections,
                            float lr, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  m[i] = 0.9f * m[i] + 0.1f * grad[i];
  v[i] = 0.999f * v[i] + 0.001f * grad[i] * grad[i];
  param[i] -= lr * m[i] * corrections[0] / (v[i] * corrections[1] + 1e-8f);
}

__global__ void cast_kernel(const float *in, at::Half *out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = static_cast<at::Half>(in[i]);
}

inline unsigned blocks(int64_t n) { return static_cast<unsigned>((n + 511) / 512); }

std::vector<float> bias_corrections(int64_t step) {
  const double c1 = 1.0 - std::pow(0.9, static_cast<double>(step)), c2 = 1.0 - std::pow(0.999, static_cast<double>(step));
  return {static_cast<float>(1.0 / c1), static_cast<float>(1.0 / c2)};
}

} // namespace

void multi_tensor_scale(at::Tensor noop, TensorList in, TensorList out, double scale) {
  if (in.empty())
    return;
  TORCH_CHECK(in.size() == out.size());
  const c10::cuda::CUDAGuard guard(in[0].device());
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(in[0].scalar_type(), "multi_tensor_scale", [&] {
    multi_tensor_apply<2>(kChunk, noop, {in, out}, ScaleFunctor<scalar_t>(), static_cast<float>(scale));
  });
}

void multi_tensor_axpby(at::Tensor noop, TensorList x, TensorList y, TensorList out, double a, double b) {
  if (x.empty())
    return;
  for (size_t i = 0; i < x.size(); ++i)
    TORCH_CHECK(x[i].is_cuda() && x[i].sizes() == y[i].sizes() && y[i].sizes() == out[i].sizes());
  at::cuda::OptionalCUDAGuard guard;
  guard.set_device(x[0].device());
  AT_DISPATCH_FLOATING_TYPES(x[0].scalar_type(), "multi_tensor_axpby", [&] {
    multi_tensor_apply<3>(kChunk, noop, {x, y, out}, AxpbyFunctor<scalar_t>(), static_cast<float>(a),
                          static_cast<float>(b));
  });
}

at::Tensor multi_tensor_l2norm(TensorList tensors) {
  TORCH_CHECK(!tensors.empty() && tensors[0].is_cuda(), "l2norm: expected tensors on a GPU");
  auto partial = at::zeros({static_cast<int64_t>(tensors.size())}, tensors[0].options().dtype(at::kFloat));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto flat = tensors[i].to(at::kFloat).contiguous();
    sum_squares_kernel<<<1, 512, 0, at::cuda::getCurrentCUDAStream()>>>(flat.data_ptr<float>(), // [[device-missing-guard]]
                                                                        partial.data_ptr<float>(), static_cast<int>(i),
                                                                        flat.numel());
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return partial.sum().sqrt();
}

at::Tensor multi_tensor_maxnorm(TensorList tensors) {
  TORCH_CHECK(!tensors.empty() && tensors[0].is_cuda(), "maxnorm: expected tensors on a GPU");
  const auto device = tensors[0].device();
  const auto partial = at::zeros({static_cast<int64_t>(tensors.size())}, at::kFloat);
  const c10::cuda::CUDAGuard guard(device);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto flat = tensors[i].to(at::kFloat).contiguous();
    max_abs_kernel<<<1, 512, 0, at::cuda::getCurrentCUDAStream()>>>(flat.data_ptr<float>(), partial.data_ptr<float>(), // [[device-kernel-launch]]
                                                                    static_cast<int>(i), flat.numel());
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return partial.max();
}

void fused_sgd(at::Tensor param, at::Tensor grad, at::Tensor momentum, double lr, double weight_decay) {
  TORCH_CHECK(param.is_cuda() && param.is_contiguous() && grad.is_contiguous());
  const auto device = param.device();
  const c10::DeviceGuard guard(device);
  sgd_kernel<<<blocks(param.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>(
      param.data_ptr<float>(), grad.data_ptr<float>(), momentum.data_ptr<float>(), static_cast<float>(lr),
      static_cast<float>(weight_decay), param.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

/// The learning rate stays in memory, so that a captured graph sees later values.
void fused_sgd_capturable(at::Tensor param, at::Tensor grad, at::Tensor momentum, const at::Tensor &lr) {
  TORCH_CHECK(param.is_cuda() && lr.numel() == 1);
  const c10::cuda::CUDAGuard guard(param.device());
  const float *rate = lr.to(param.device(), at::kFloat, /*non_blocking=*/true).data_ptr<float>(); // [[device-dangling-data]]
  grad = grad.contiguous();
  sgd_capturable_kernel<<<blocks(param.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>(
      param.data_ptr<float>(), grad.data_ptr<float>(), momentum.data_ptr<float>(), rate, param.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void fused_adam(at::Tensor param, at::Tensor grad, at::Tensor exp_avg, at::Tensor exp_avg_sq, double lr, int64_t step) {
  TORCH_CHECK(param.is_cuda() && param.device() == grad.device(), "param on ", param.device(), ", grad on ", grad.device());
  const c10::cuda::CUDAGuard guard(param.device());
  const auto corrections = at::tensor(bias_corrections(step), at::device(at::kCUDA).dtype(at::kFloat));
  AT_DISPATCH_FLOATING_TYPES(param.scalar_type(), "fused_adam", [&] {
    adam_kernel<scalar_t><<<blocks(param.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>(
        param.data_ptr<scalar_t>(), grad.data_ptr<scalar_t>(), exp_avg.data_ptr<scalar_t>(),
        exp_avg_sq.data_ptr<scalar_t>(), corrections.data_ptr<float>(), static_cast<float>(lr), param.numel());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void fused_adam_amsgrad(at::Tensor param, at::Tensor grad, at::Tensor exp_avg, at::Tensor exp_avg_sq, double lr,
                        int64_t step) {
  TORCH_CHECK(param.is_cuda() && param.device() == grad.device(), "param on ", param.device(), ", grad on ", grad.device());
  const auto corrections = at::tensor(bias_corrections(step), at::device(at::kCUDA).dtype(at::kFloat));
  const c10::cuda::CUDAGuard guard(param.device());
  auto max_avg_sq = at::max(exp_avg_sq, grad * grad);
  AT_DISPATCH_FLOATING_TYPES(param.scalar_type(), "fused_adam_amsgrad", [&] {
    adam_kernel<scalar_t><<<blocks(param.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-lost-index]]
        param.data_ptr<scalar_t>(), grad.data_ptr<scalar_t>(), exp_avg.data_ptr<scalar_t>(),
        max_avg_sq.data_ptr<scalar_t>(), corrections.data_ptr<float>(), static_cast<float>(lr), param.numel());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

at::Tensor cast_copy(const at::Tensor &master) {
  if (!master.is_cuda())
    return master.to(at::kHalf);
  const c10::cuda::CUDAStreamGuard guard(at::cuda::getDefaultCUDAStream(master.get_device()));
  auto out = at::empty(master.sizes(), master.options().dtype(at::kHalf));
  const auto in = master.contiguous();
  cast_kernel<<<blocks(in.numel()), 512, 0, at::cuda::getCurrentCUDAStream()>>>(in.data_ptr<float>(),
                                                                               out.data_ptr<at::Half>(), in.numel());
  return out;
}

} // namespace fusedopt

TORCH_LIBRARY(fusedopt, m) {
  m.def("scale_(Tensor noop, Tensor[] inputs, Tensor[] outputs, float scale) -> ()", &fusedopt::multi_tensor_scale);
  m.def("l2norm(Tensor[] tensors) -> Tensor", &fusedopt::multi_tensor_l2norm);
  m.def("cast_copy(Tensor master) -> Tensor", &fusedopt::cast_copy);
}
