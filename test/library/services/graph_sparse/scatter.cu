#include "graph.h"
#include "scatter.cuh"

namespace gs {

namespace {

Reduce parse(const std::string& how) {
  if (how == "sum")
    return Reduce::kSum;
  TORCH_CHECK(how == "min" || how == "max", "unknown reduction ", how);
  return how == "min" ? Reduce::kMin : Reduce::kMax;
}

__global__ void gather_kernel(const float* src, const int64_t* indptr, float* out, int64_t rows) {
  const int64_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows)
    for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i)
      out[i] = src[row];
}

__global__ void softmax_kernel(const float* scores, const int64_t* index, float* out, int64_t count) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    out[index[i]] += scores[i];
}

__global__ void ball_kernel(int n, float radius, const float* centres, const float* points, int* idx) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (points[i] - centres[blockIdx.x] < radius)
      idx[blockIdx.x] = i;
}

__global__ void furthest_kernel(int n, int m, const float* points, float* distance, int* idx) {
  for (int j = 0; j < m; ++j)
    idx[j] = distance[j % n] < points[j % n];
}

} // namespace

at::Tensor scatter_cuda(const at::Tensor& src, const at::Tensor& index, int64_t size, const std::string& how) {
  CHECK_INPUT(src);
  CHECK_INPUT(index);
  c10::cuda::CUDAGuard guard(src.device());
  const Reduce reduce = parse(how);
  auto out = at::zeros({size}, src.options());
  AT_DISPATCH_FLOATING_TYPES(src.scalar_type(), "scatter", [&] {
    LAUNCH_REDUCE(scatter_kernel, src.numel(), src.data_ptr<scalar_t>(), index.data_ptr<int64_t>(),
                  out.data_ptr<scalar_t>());
  });
  return out;
}

at::Tensor segment_csr_cuda(const at::Tensor& src, const at::Tensor& indptr, const std::string& how) {
  CHECK_INPUT(src);
  CHECK_INPUT(indptr);
  const Reduce reduce = parse(how);
  const int64_t rows = indptr.numel() - 1;
  auto out = at::empty({rows}, src.options());
  if (rows == 0)
    return out;
  AT_DISPATCH_FLOATING_TYPES(src.scalar_type(), "segment_csr", [&] {
    LAUNCH_REDUCE(segment_kernel, rows, src.data_ptr<scalar_t>(), indptr.data_ptr<int64_t>(), out.data_ptr<scalar_t>()); // [[device-missing-guard]]
  });
  return out;
}

at::Tensor gather_csr_cuda(const at::Tensor& src, const at::Tensor& indptr) {
  CHECK_INPUT(src);
  CHECK_INPUT(indptr);
  cudaSetDevice(src.get_device());
  const int64_t total = indptr[-1].item<int64_t>();
  auto out = at::empty({total}, src.options());
  gather_kernel<<<BLOCKS(src.numel()), THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      src.data_ptr<float>(), indptr.data_ptr<int64_t>(), out.data_ptr<float>(), src.numel());
  return out;
}

// The same with the lengths of the segments, as data loaders give them.
at::Tensor segment_lengths_cuda(const at::Tensor& src, const std::vector<int64_t>& lengths) {
  CHECK_INPUT(src);
  c10::cuda::CUDAGuard guard(src.device());
  const int64_t rows = lengths.size();
  auto indptr = at::zeros({rows + 1}, at::kLong);
  int64_t* ends = indptr.data_ptr<int64_t>();
  for (int64_t i = 0; i < rows; ++i)
    ends[i + 1] = ends[i] + lengths[i];
  TORCH_CHECK(ends[rows] == src.numel(), "the lengths do not cover src");
  auto out = at::empty({rows}, src.options());
  segment_kernel<float, Reduce::kSum><<<BLOCKS(rows), THREADS>>>(src.data_ptr<float>(), ends, out.data_ptr<float>(), rows); // [[device-kernel-launch]]
  return out;
}

at::Tensor edge_softmax_cuda(const at::Tensor& scores, const at::Tensor& index) {
  CHECK_INPUT(scores);
  CHECK_INPUT(index);
  const auto stream = at::cuda::getStreamFromPool(/*isHighPriority=*/true); // [[device-lost-index]]
  c10::cuda::CUDAGuard guard(scores.device());
  auto out = at::zeros_like(scores);
  softmax_kernel<<<BLOCKS(scores.numel()), THREADS, 0, stream>>>(
      scores.data_ptr<float>(), index.data_ptr<int64_t>(), out.data_ptr<float>(), scores.numel());
  return out;
}

void ball_query_launcher(int b, int n, int m, float radius, const float* centres, const float* points, int* idx) {
  ball_kernel<<<dim3(m, b), THREADS>>>(n, radius, centres, points, idx);
}

void furthest_point_launcher(int b, int n, int m, const float* points, float* distance, int* idx) {
  furthest_kernel<<<b, THREADS>>>(n, m, points, distance, idx);
}

} // namespace gs
