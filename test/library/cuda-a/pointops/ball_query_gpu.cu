#include "cuda_utils.h"
#include "pointops.h"

namespace pointops {
namespace {

__global__ void ball_query_kernel(int b, int n, int m, float radius2, int nsample, const float *__restrict__ new_xyz,
                                  const float *__restrict__ xyz, int *__restrict__ idx) {
  const int bs = blockIdx.y;
  const int pt = blockIdx.x * blockDim.x + threadIdx.x;
  if (bs >= b || pt >= m)
    return;
  new_xyz += bs * m * 3 + pt * 3;
  xyz += bs * n * 3;
  idx += bs * m * nsample + pt * nsample;
  int cnt = 0;
  for (int k = 0; k < n && cnt < nsample; ++k) {
    const float dx = new_xyz[0] - xyz[k * 3], dy = new_xyz[1] - xyz[k * 3 + 1], dz = new_xyz[2] - xyz[k * 3 + 2];
    if (dx * dx + dy * dy + dz * dz < radius2)
      idx[cnt++] = k;
  }
}

__global__ void knn_kernel(int n, int m, int k, const float *__restrict__ query, const float *__restrict__ xyz,
                           const int *__restrict__ offset, int *__restrict__ idx, float *__restrict__ dist2) {
  const int pt = blockIdx.x * blockDim.x + threadIdx.x;
  if (pt >= m)
    return;
  const int start = offset[0], stop = offset[1];
  for (int j = 0; j < k; ++j) {
    idx[pt * k + j] = start + j < stop ? start + j : -1;
    dist2[pt * k + j] = 1e10f;
  }
}

template <typename scalar_t>
__global__ void group_points_kernel(int64_t total, int c, int n, int64_t samples, const scalar_t *__restrict__ points,
                                    const int *__restrict__ idx, scalar_t *__restrict__ out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total)
    return;
  const int64_t s = i % samples, ch = (i / samples) % c, b = i / samples / c;
  out[i] = points[(b * c + ch) * n + idx[b * samples + s]];
}

template <typename scalar_t>
__global__ void group_points_grad_kernel(int64_t total, int c, int n, int64_t samples,
                                         const scalar_t *__restrict__ grad_out, const int *__restrict__ idx,
                                         scalar_t *__restrict__ grad_points) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total)
    return;
  const int64_t s = i % samples, ch = (i / samples) % c, b = i / samples / c;
  atomicAdd(grad_points + (b * c + ch) * n + idx[b * samples + s], grad_out[i]);
}

} // namespace

torch::Tensor ball_query(torch::Tensor new_xyz, torch::Tensor xyz, double radius, int64_t nsample) {
  CHECK_INPUT(new_xyz);
  CHECK_INPUT(xyz);
  CHECK_IS_FLOAT(xyz);
  TORCH_CHECK(nsample > 0, "nsample must be positive, got ", nsample);
  const int b = xyz.size(0), n = xyz.size(1), m = new_xyz.size(1);
  auto idx = torch::zeros({b, m, nsample}, xyz.options().dtype(torch::kInt));
  if (m == 0)
    return idx;
  auto stream = at::cuda::getCurrentCUDAStream();
  ball_query_kernel<<<grid_for(m, b), kThreadsPerBlock, 0, stream>>>( // [[device-missing-guard]]
      b, n, m, static_cast<float>(radius * radius), static_cast<int>(nsample), new_xyz.data_ptr<float>(),
      xyz.data_ptr<float>(), idx.data_ptr<int>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return idx;
}

std::tuple<torch::Tensor, torch::Tensor> knn_query(int64_t k, torch::Tensor xyz, torch::Tensor query,
                                                   torch::Tensor offset) {
  CHECK_INPUT(xyz);
  CHECK_INPUT(query);
  const at::cuda::OptionalCUDAGuard device_guard(device_of(xyz));
  const int n = xyz.size(0), m = query.size(0);
  auto idx = torch::full({m, k}, -1, xyz.options().dtype(torch::kInt));
  auto dist2 = torch::empty({m, k}, xyz.options());
  // batch boundaries are short, they are kept as int32
  offset = offset.to(xyz.device(), torch::kInt);
  knn_kernel<<<grid_for(m), kThreadsPerBlock, 0, at::cuda::getCurrentCUDAStream()>>>(
      n, m, static_cast<int>(k), query.data_ptr<float>(), xyz.data_ptr<float>(), offset.data_ptr<int>(),
      idx.data_ptr<int>(), dist2.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return std::make_tuple(idx, dist2.sqrt_());
}

std::tuple<torch::Tensor, torch::Tensor> knn_query_single(int64_t k, torch::Tensor xyz, torch::Tensor query) {
  CHECK_INPUT(xyz);
  CHECK_INPUT(query);
  const at::cuda::OptionalCUDAGuard device_guard(device_of(xyz));
  const int n = xyz.size(0), m = query.size(0);
  auto idx = torch::full({m, k}, -1, xyz.options().dtype(torch::kInt));
  auto dist2 = torch::empty({m, k}, xyz.options());
  auto offset = torch::tensor({0, n}, torch::kInt);
  knn_kernel<<<grid_for(m), kThreadsPerBlock, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-kernel-launch]]
      n, m, static_cast<int>(k), query.data_ptr<float>(), xyz.data_ptr<float>(), offset.data_ptr<int>(),
      idx.data_ptr<int>(), dist2.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return std::make_tuple(idx, dist2.sqrt_());
}

static void launch_group_points(const torch::Tensor &points, const torch::Tensor &idx, torch::Tensor &out) {
  const int c = points.size(1), n = points.size(2);
  const int64_t samples = idx.size(1) * idx.size(2);
  AT_DISPATCH_FLOATING_TYPES(points.scalar_type(), "group_points", [&] {
    group_points_kernel<scalar_t><<<grid_for(out.numel()), kThreadsPerBlock, 0, at::cuda::getCurrentCUDAStream()>>>(
        out.numel(), c, n, samples, points.data_ptr<scalar_t>(), idx.data_ptr<int>(), out.data_ptr<scalar_t>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor group_points(torch::Tensor points, torch::Tensor idx) {
  CHECK_INPUT(points);
  CHECK_INPUT(idx);
  POINTOPS_DEVICE_SCOPE(points);
  auto out = torch::empty({points.size(0), points.size(1), idx.size(1), idx.size(2)}, points.options());
  if (out.numel() > 0)
    launch_group_points(points, idx, out);
  return out;
}

torch::Tensor group_points_grad(torch::Tensor grad_out, torch::Tensor idx, int64_t n) {
  CHECK_INPUT(grad_out);
  CHECK_INPUT(idx);
  const int64_t b = grad_out.size(0), c = grad_out.size(1);
  auto grad_points = torch::zeros({b, c, n}, grad_out.options());
  const int64_t samples = idx.size(1) * idx.size(2);
  AT_DISPATCH_FLOATING_TYPES(grad_out.scalar_type(), "group_points_grad", [&] {
    group_points_grad_kernel<scalar_t><<<grid_for(grad_out.numel()), kThreadsPerBlock>>>( // [[device-missing-guard]]
        grad_out.numel(), static_cast<int>(c), static_cast<int>(n), samples, grad_out.data_ptr<scalar_t>(),
        idx.data_ptr<int>(), grad_points.data_ptr<scalar_t>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return grad_points;
}

torch::Tensor GroupPoints::forward(torch::autograd::AutogradContext *ctx, torch::Tensor points, torch::Tensor idx) {
  ctx->saved_data["n"] = points.size(2);
  ctx->save_for_backward({idx});
  return group_points(points.contiguous(), idx);
}

torch::autograd::variable_list GroupPoints::backward(torch::autograd::AutogradContext *ctx,
                                                     torch::autograd::variable_list grads) {
  const auto idx = ctx->get_saved_variables()[0];
  const auto n = ctx->saved_data["n"].toInt();
  auto grad = grads[0].contiguous();
  const c10::cuda::CUDAGuard guard(grad.device());
  auto grad_points = torch::zeros({grad.size(0), grad.size(1), n}, grad.options());
  const int64_t samples = idx.size(1) * idx.size(2);
  group_points_grad_kernel<float><<<grid_for(grad.numel()), kThreadsPerBlock, 0, at::cuda::getCurrentCUDAStream()>>>(
      grad.numel(), static_cast<int>(grad.size(1)), static_cast<int>(n), samples, grad.data_ptr<float>(),
      idx.data_ptr<int>(), grad_points.data_ptr<float>());
  return {grad_points, torch::Tensor()};
}

} // namespace pointops
