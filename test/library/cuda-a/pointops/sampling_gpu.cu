#include "cuda_utils.h"
#include "pointops.h"

namespace pointops {
namespace {

__global__ void furthest_point_sampling_kernel(int b, int n, int m, const float *__restrict__ dataset,
                                               float *__restrict__ temp, int *__restrict__ idxs) {
  const int batch = blockIdx.x;
  dataset += batch * n * 3;
  temp += batch * n;
  idxs += batch * m;
  int old = 0;
  if (threadIdx.x == 0)
    idxs[0] = old;
  for (int j = 1; j < m; ++j) {
    int best = 0;
    for (int k = threadIdx.x; k < n; k += blockDim.x)
      best = temp[k] > temp[best] ? k : best;
    __syncthreads();
    idxs[j] = best;
  }
}

__global__ void weighted_sampling_kernel(int b, int n, int m, const float *dataset, const float *weights, float *temp,
                                         int *idxs) {
  const int batch = blockIdx.x;
  if (batch < b && threadIdx.x == 0)
    idxs[batch * m] = weights[batch * n] > 0 ? 0 : n - 1;
}

__global__ void gather_points_kernel(int c, int n, int m, const float *__restrict__ points,
                                     const int *__restrict__ idx, float *__restrict__ out) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < m)
    for (int l = 0; l < c; ++l)
      out[l * m + j] = points[l * n + idx[j]];
}

__global__ void voxel_count_kernel(const float *__restrict__ xyz, int64_t n, float inv_size, int64_t cells,
                                   int *__restrict__ counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(counts + static_cast<int64_t>(xyz[i * 3] * inv_size) % cells, 1);
}

void fps_launcher(int b, int n, int m, const float *dataset, float *temp, int *idxs, cudaStream_t stream) {
  const unsigned threads = opt_n_threads(n);
  switch (threads) {
  case 1024:
  case 512:
    furthest_point_sampling_kernel<<<b, 512, 0, stream>>>(b, n, m, dataset, temp, idxs);
    break;
  default:
    furthest_point_sampling_kernel<<<b, threads, 0, stream>>>(b, n, m, dataset, temp, idxs);
  }
  const cudaError_t err = cudaGetLastError();
  TORCH_CHECK(err == cudaSuccess, "furthest point sampling failed: ", cudaGetErrorString(err));
}

} // namespace

torch::Tensor furthest_point_sample(torch::Tensor xyz, int64_t npoint) {
  CHECK_INPUT(xyz);
  CHECK_IS_FLOAT(xyz);
  const int b = xyz.size(0), n = xyz.size(1);
  TORCH_CHECK(npoint <= n, "cannot sample ", npoint, " of ", n, " points");
  const c10::cuda::CUDAGuard guard{xyz.device()};
  auto idx = torch::zeros({b, npoint}, xyz.options().dtype(torch::kInt));
  auto temp = torch::full({b, n}, 1e10, xyz.options());
  fps_launcher(b, n, static_cast<int>(npoint), xyz.data_ptr<float>(), temp.data_ptr<float>(), idx.data_ptr<int>(),
               at::cuda::getCurrentCUDAStream());
  return idx;
}

torch::Tensor furthest_point_sample_weighted(torch::Tensor xyz, torch::Tensor weights, int64_t npoint) {
  CHECK_INPUT(xyz);
  CHECK_INPUT(weights);
  TORCH_CHECK(xyz.device() == weights.device(), "xyz and weights must be on one device");
  const int b = xyz.size(0), n = xyz.size(1), m = npoint;
  auto temp = torch::full({b, n}, 1e10, torch::dtype(torch::kFloat).device(torch::kCUDA));
  const c10::cuda::CUDAGuard guard(xyz.device());
  auto idx = torch::zeros({b, npoint}, torch::dtype(torch::kInt).device(torch::kCUDA));
  weighted_sampling_kernel<<<b, opt_n_threads(n), 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-lost-index]]
      b, n, m, xyz.data_ptr<float>(), weights.data_ptr<float>(), temp.data_ptr<float>(), idx.data_ptr<int>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return idx;
}

torch::Tensor gather_points(torch::Tensor points, torch::Tensor idx) {
  CHECK_INPUT(points);
  TORCH_CHECK(points.dim() == 2 && idx.dim() == 1);
  const int c = points.size(0), n = points.size(1), m = idx.size(0);
  int previous = 0;
  C10_CUDA_CHECK(cudaGetDevice(&previous));
  C10_CUDA_CHECK(cudaSetDevice(points.get_device()));
  auto out = torch::empty({c, m}, points.options());
  auto index = idx.to(torch::dtype(torch::kInt).device(torch::kCUDA)).contiguous();
  gather_points_kernel<<<grid_for(m), kThreadsPerBlock>>>(c, n, m, points.data_ptr<float>(), index.data_ptr<int>(),
                                                           out.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  C10_CUDA_CHECK(cudaSetDevice(previous));
  return out;
}

static void count_into(const torch::Tensor &xyz, double voxel_size, torch::Tensor &counts) {
  c10::cuda::CUDAGuard guard(xyz.device());
  voxel_count_kernel<<<grid_for(xyz.size(0)), kThreadsPerBlock, 0, at::cuda::getCurrentCUDAStream()>>>(
      xyz.data_ptr<float>(), xyz.size(0), static_cast<float>(1.0 / voxel_size), counts.size(0),
      counts.data_ptr<int>());
}

torch::Tensor voxel_count(torch::Tensor xyz, double voxel_size, int64_t cells) {
  CHECK_INPUT(xyz);
  TORCH_CHECK(voxel_size > 0, "voxel_size must be positive");
  auto counts = torch::zeros({cells}, xyz.options().dtype(torch::kInt));
  count_into(xyz, voxel_size, counts);
  return counts;
}

std::vector<torch::Tensor> voxel_count_levels(torch::Tensor xyz, std::vector<double> sizes, int64_t cells) {
  CHECK_INPUT(xyz);
  std::vector<torch::Tensor> levels;
  auto coarse = torch::zeros({cells}, xyz.options().dtype(torch::kInt));
  count_into(xyz, sizes.empty() ? 1.0 : sizes.back(), coarse);
  for (double size : sizes) {
    auto counts = torch::zeros({cells}, xyz.options().dtype(torch::kInt));
    voxel_count_kernel<<<grid_for(xyz.size(0)), kThreadsPerBlock>>>( // [[device-missing-guard]]
        xyz.data_ptr<float>(), xyz.size(0), static_cast<float>(1.0 / size), cells, counts.data_ptr<int>());
    levels.push_back(counts + coarse);
  }
  return levels;
}

} // namespace pointops
