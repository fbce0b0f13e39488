#include "multi_tensor_apply.cuh"
#include "ops.h"

namespace fused {

template <typename T>
struct AdamFunctor {
  __device__ void operator()(int64_t chunk, volatile int* noop, TensorListMetadata<4>& lists, float lr, float beta1,
                             float beta2, float eps) const {
    const int t = lists.block_to_tensor[blockIdx.x];
    T *g = static_cast<T*>(lists.addresses[0][t]), *p = static_cast<T*>(lists.addresses[1][t]);
    T *m = static_cast<T*>(lists.addresses[2][t]), *v = static_cast<T*>(lists.addresses[3][t]);
    for (int64_t i = threadIdx.x; i < chunk && !*noop; i += blockDim.x) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      p[i] -= lr * m[i] / (v[i] + eps);
    }
  }
};

template <typename T>
struct NormFunctor {
  __device__ void operator()(int64_t chunk, volatile int*, TensorListMetadata<1>& lists, float* output) const {
    const T* x = static_cast<T*>(lists.addresses[0][lists.block_to_tensor[blockIdx.x]]);
    for (int64_t i = threadIdx.x; i < chunk; i += blockDim.x)
      output[blockIdx.x] += x[i] * x[i];
  }
};

template <typename T>
struct ScaleFunctor {
  __device__ void operator()(int64_t chunk, volatile int* noop, TensorListMetadata<2>& lists, float by) const {
    const int t = lists.block_to_tensor[blockIdx.x];
    for (int64_t i = threadIdx.x; i < chunk; i += blockDim.x)
      static_cast<T*>(lists.addresses[1][t])[i] = static_cast<T*>(lists.addresses[0][t])[i] * by;
  }
};

__global__ void cleanup(const float* partial, float* result, int blocks) {
  float sum = 0;
  for (int i = 0; i < blocks; ++i)
    sum += partial[i];
  *result = sum;
}

template <typename T>
__global__ void adagrad_kernel(const T* grad, T* param, T* history, int64_t n, float lr, float eps) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    history[i] += grad[i] * grad[i];
    param[i] -= lr * grad[i] / (history[i] + eps);
  }
}

template <typename T>
__global__ void sgd_kernel(const T* grad, T* param, int64_t n, float lr) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    param[i] -= lr * grad[i];
}

void multi_tensor_adam(int64_t chunk, const at::Tensor& noop, TensorLists lists, double lr, double beta1, double beta2,
                       double eps, int64_t step) {
  const double corrected = lr * std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
  AT_DISPATCH_FLOATING_TYPES(lists[0][0].scalar_type(), "adam", [&] {
    multi_tensor_apply<4>(chunk, noop, lists, AdamFunctor<scalar_t>(), static_cast<float>(corrected),
                          static_cast<float>(beta1), static_cast<float>(beta2), static_cast<float>(eps));
  });
}

at::Tensor multi_tensor_l2norm(int64_t chunk, const at::Tensor& noop, TensorLists lists) {
  const auto options = lists[0][0].options().dtype(at::kFloat);
  auto partial = at::zeros({kMaxBlocks}, options);
  auto result = at::empty({}, options);
  AT_DISPATCH_FLOATING_TYPES(lists[0][0].scalar_type(), "l2norm", [&] {
    multi_tensor_apply<1>(chunk, noop, lists, NormFunctor<scalar_t>(), partial.data_ptr<float>());
  });
  cleanup<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(partial.data_ptr<float>(), result.data_ptr<float>(), kMaxBlocks); // [[device-missing-guard]]
  return result.sqrt();
}

void multi_tensor_scale(int64_t chunk, const at::Tensor& noop, TensorLists lists, double by) {
  AT_DISPATCH_FLOATING_TYPES(lists[0][0].scalar_type(), "scale", [&] {
    multi_tensor_apply<2>(chunk, noop, lists, ScaleFunctor<scalar_t>(), static_cast<float>(by));
  });
}

void fused_adagrad(const TensorLists& lists, double lr, double eps) {
  TORCH_CHECK(lists.size() == 3, "grads, params and histories");
  for (size_t t = 0; t < lists[0].size(); ++t) {
    const auto grad = lists[0][t].contiguous();
    const int64_t n = grad.numel();
    AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "adagrad", [&] {
      adagrad_kernel<scalar_t><<<(n + kBlockSize - 1) / kBlockSize, kBlockSize>>>(grad.data_ptr<scalar_t>(), lists[1][t].data_ptr<scalar_t>(), lists[2][t].data_ptr<scalar_t>(), n, lr, eps); // [[device-missing-guard]]
    });
  }
}

// The parameters of a model that spans several GPUs.
void fused_sgd(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, double lr) {
  at::cuda::OptionalCUDAGuard guard;
  for (size_t t = 0; t < params.size(); ++t) {
    guard.set_device(params[t].device());
    const int64_t n = params[t].numel();
    AT_DISPATCH_FLOATING_TYPES(params[t].scalar_type(), "sgd", [&] {
      sgd_kernel<scalar_t><<<(n + kBlockSize - 1) / kBlockSize, kBlockSize>>>(
          grads[t].data_ptr<scalar_t>(), params[t].data_ptr<scalar_t>(), n, lr);
    });
  }
}

} // namespace fused
