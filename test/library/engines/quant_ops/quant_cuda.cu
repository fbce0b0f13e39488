#include "quant.h"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublas_v2.h>
#include <curand.h>

namespace quantops {

namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void row_scale_kernel(int rows, int cols, const T* x, float* scale, int8_t* q) {
  const int r = blockIdx.x;
  if (r < rows && threadIdx.x == 0) {
    scale[r] = static_cast<float>(x[r * cols]) / 127;
    q[r * cols] = 127;
  }
}

__global__ void dequant_kernel(int64_t n, int cols, const int8_t* q, const float* scale, float* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = q[i] * scale[i / cols];
}

__global__ void w4_kernel(int m, int n, int k, const float* x, const int* packed, const float* scales,
                          const float* zeros, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < m * n)
    out[i] = x[i / n * k] * ((packed[i % n] & 15) - (zeros ? zeros[i % n] : 8.f)) * scales[i % n];
}

__global__ void lookup_kernel(int64_t n, const uint8_t* codes, const float* table, float* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = table[codes[i] & 15];
}

__global__ void smooth_kernel(int64_t n, int cols, const float* x, const float* f, float* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = x[i] / f[i % cols];
}

__global__ void outlier_kernel(int rows, int cols, const float* x, float threshold, bool* flag) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; c < cols && r < rows; ++r)
    if (fabsf(x[r * cols + c]) > threshold)
      flag[c] = true;
}

__global__ void round_kernel(int64_t n, const float* x, const float* noise, float* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = floorf(x[i] + noise[i]);
}

__global__ void fake_kernel(int64_t n, float* x, const float* scale) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = roundf(x[i] / scale[0]) * scale[0];
}

inline unsigned blocks(int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

const std::vector<double>& nf4_levels() {
  static const std::vector<double> levels = {-1, -.6962, -.5251, -.3949, -.2844, -.1848, -.0911, 0,
                                             .0796, .1609, .2461, .3379, .4407, .5626, .7230, 1};
  return levels;
}

} // namespace

std::tuple<at::Tensor, at::Tensor> quantize_rows_cuda(const at::Tensor& x) {
  QO_CHECK_CUDA(x);
  QO_CHECK_RANK(x, 2);
  QO_GUARD(x);
  const auto dense = x.contiguous();
  auto q = at::zeros(x.sizes(), x.options().dtype(at::kChar));
  auto scale = at::zeros({x.size(0)}, x.options().dtype(at::kFloat));
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "quantize_rows", [&] {
    row_scale_kernel<scalar_t><<<x.size(0), 32, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.size(0), x.size(1), dense.data_ptr<scalar_t>(), scale.data_ptr<float>(), q.data_ptr<int8_t>());
  });
  return {q, scale};
}

at::Tensor dequantize_cuda(const at::Tensor& q, const at::Tensor& scale) {
  auto out = at::zeros(q.sizes(), q.options().dtype(at::kFloat));
  dequant_kernel<<<blocks(q.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(q.numel(), q.size(1), q.data_ptr<int8_t>(), scale.data_ptr<float>(), out.data_ptr<float>()); // [[device-missing-guard]]
  return out;
}

at::Tensor w4_matmul_cuda(const at::Tensor& x, const at::Tensor& packed, const at::Tensor& scales,
                          const c10::optional<at::Tensor>& zeros) {
  QO_CHECK_CUDA(x);
  QO_CHECK_SAME(x, packed);
  QO_GUARD(x);
  const int m = x.size(0), k = x.size(1), n = packed.size(0);
  auto out = at::zeros({m, n}, x.options());
  w4_kernel<<<blocks(m * n), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      m, n, k, x.data_ptr<float>(), packed.data_ptr<int>(), scales.data_ptr<float>(),
      zeros ? zeros->data_ptr<float>() : nullptr, out.data_ptr<float>());
  return out;
}

at::Tensor scaled_gemm_cuda(const at::Tensor& a, const at::Tensor& b, double alpha) {
  QO_CHECK_CUDA(a);
  QO_CHECK_SAME(a, b);
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle(); // [[device-lost-index]]
  QO_GUARD(a);
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = at::empty({m, n}, a.options());
  const float scale = static_cast<float>(alpha), zero = 0;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &scale, b.data_ptr<float>(), n, a.data_ptr<float>(), k, &zero,
              c.data_ptr<float>(), n);
  return c;
}

at::Tensor nf4_lookup_cuda(const at::Tensor& codes) {
  QO_CHECK_CUDA(codes);
  QO_GUARD(codes);
  const auto table = at::tensor(nf4_levels(), at::kFloat);
  auto out = at::empty(codes.sizes(), codes.options().dtype(at::kFloat));
  lookup_kernel<<<blocks(codes.numel()), kThreads>>>(codes.numel(), codes.data_ptr<uint8_t>(), table.to(codes.device()).data_ptr<float>(),
                                                     out.data_ptr<float>());
  return out;
}

at::Tensor smooth_cuda(const at::Tensor& x, const at::Tensor& factors) {
  QO_CHECK_CUDA(x);
  c10::cuda::OptionalCUDAGuard guard;
  if (x.get_device() != c10::cuda::current_device())
    guard.set_device(x.device());
  auto out = at::empty_like(x);
  const auto f = factors.to(x.options());
  smooth_kernel<<<blocks(x.numel()), kThreads>>>(x.numel(), x.size(1), x.data_ptr<float>(), f.data_ptr<float>(),
                                                 out.data_ptr<float>());
  return out;
}

at::Tensor outlier_columns_cuda(const at::Tensor& x, double threshold) {
  QO_CHECK_CUDA(x);
  QO_GUARD(x);
  auto flags = at::zeros({x.size(1)}, at::kBool);
  outlier_kernel<<<blocks(x.size(1)), kThreads>>>(x.size(0), x.size(1), x.data_ptr<float>(), static_cast<float>(threshold), flags.data_ptr<bool>()); // [[device-kernel-launch]]
  return flags.nonzero().flatten();
}

at::Tensor stochastic_round_cuda(const at::Tensor& x, int64_t seed) {
  QO_CHECK_CUDA(x);
  QO_GUARD(x);
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandSetPseudoRandomGeneratorSeed(generator, static_cast<unsigned long long>(seed));
  auto noise = at::empty(x.sizes(), at::device(at::kCUDA).dtype(at::kFloat)), out = at::empty_like(x);
  curandGenerateUniform(generator, noise.data_ptr<float>(), noise.numel());
  round_kernel<<<blocks(x.numel()), kThreads>>>(x.numel(), x.data_ptr<float>(), noise.data_ptr<float>(),
                                                out.data_ptr<float>());
  curandDestroyGenerator(generator);
  return out;
}

void fake_quant_inplace_cuda(at::Tensor& x, const at::Tensor& scale) {
  QO_CHECK_CUDA(x);
  QO_CHECK_SAME(x, scale);
  {
    QO_GUARD(x);
    if (!x.is_contiguous())
      x = x.contiguous();
  }
  fake_kernel<<<blocks(x.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream(x.get_device())>>>(x.numel(), x.data_ptr<float>(), scale.data_ptr<float>()); // [[device-missing-guard]]
}

} // namespace quantops
