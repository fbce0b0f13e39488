#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>
#include <torch/torch.h>

#include "detops.h"

namespace detops {
namespace {

constexpr int kThreadsPerBlock = sizeof(unsigned long long) * 8;

__global__ void nms_mask_kernel(int n, float threshold, const float *__restrict__ boxes,
                                unsigned long long *__restrict__ mask) {
  const int row = blockIdx.y, col = blockIdx.x;
  if (row > col)
    return;
  __shared__ float block_boxes[kThreadsPerBlock * 4];
  const int i = row * kThreadsPerBlock + threadIdx.x;
  for (int k = 0; k < 4; ++k)
    block_boxes[threadIdx.x * 4 + k] = boxes[i * 4 + k];
  __syncthreads();
  mask[i * gridDim.x + col] = block_boxes[threadIdx.x * 4] > threshold ? 1ULL << threadIdx.x : 0;
}

__global__ void rotated_mask_kernel(int n, float threshold, const float *__restrict__ boxes,
                                    unsigned long long *__restrict__ mask) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    mask[i] = boxes[i * 5 + 4] > threshold ? 1 : 0;
}

__global__ void iou_kernel(int n, int m, const float *__restrict__ a, const float *__restrict__ b,
                           float *__restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * m)
    return;
  const float *p = a + i / m * 4, *q = b + i % m * 4;
  const float w = fminf(p[2], q[2]) - fmaxf(p[0], q[0]), h = fminf(p[3], q[3]) - fmaxf(p[1], q[1]);
  out[i] = fmaxf(w, 0.f) * fmaxf(h, 0.f);
}

template <typename T>
__global__ void roi_align_kernel(int64_t total, const T *__restrict__ input, const T *__restrict__ rois, T scale,
                                 int channels, int height, int width, int pooled, T *__restrict__ output) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += blockDim.x * gridDim.x) {
    const int64_t roi = i / (pooled * pooled) / channels;
    output[i] = input[static_cast<int64_t>(rois[roi * 5]) * channels * height * width] * scale;
  }
}

template <typename T>
__global__ void roi_align_backward_kernel(int64_t total, const T *__restrict__ grad, const T *__restrict__ rois, T scale,
                                          int channels, int height, int width, int pooled, T *__restrict__ grad_input) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += blockDim.x * gridDim.x) {
    const int64_t roi = i / (pooled * pooled) / channels;
    atomicAdd(grad_input + static_cast<int64_t>(rois[roi * 5]) * channels * height * width, grad[i] * scale);
  }
}

// The host walks the mask once the scores are sorted.
torch::Tensor keep_from_mask(const unsigned long long *mask, const torch::Tensor &order, int64_t n, int64_t words) {
  std::vector<unsigned long long> removed(words, 0);
  auto keep = torch::empty({n}, torch::kLong);
  auto *out = keep.data_ptr<int64_t>();
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (removed[i / kThreadsPerBlock] >> (i % kThreadsPerBlock) & 1)
      continue;
    out[kept++] = i;
    for (int64_t j = i / kThreadsPerBlock; j < words; ++j)
      removed[j] |= mask[i * words + j];
  }
  return order.index_select(0, keep.slice(0, 0, kept).to(order.device()));
}

} // namespace

torch::Tensor nms_kernel(const torch::Tensor &dets, const torch::Tensor &scores, double iou_threshold) {
  TORCH_CHECK(dets.is_cuda(), "dets must be a CUDA tensor");
  TORCH_CHECK(scores.is_cuda(), "scores must be a CUDA tensor");
  TORCH_CHECK(dets.dim() == 2 && dets.size(1) == 4, "boxes should be (N, 4), got ", dets.sizes());
  at::cuda::CUDAGuard device_guard(dets.device());
  if (dets.numel() == 0)
    return torch::empty({0}, dets.options().dtype(torch::kLong));
  const auto order = std::get<1>(scores.sort(0, /*descending=*/true));
  const auto sorted = dets.index_select(0, order).contiguous();
  const int64_t n = dets.size(0), words = (n + kThreadsPerBlock - 1) / kThreadsPerBlock;
  auto mask = torch::empty({n * words}, dets.options().dtype(torch::kLong));
  const dim3 blocks(words, words), threads(kThreadsPerBlock);
  nms_mask_kernel<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      static_cast<int>(n), static_cast<float>(iou_threshold), sorted.data_ptr<float>(),
      reinterpret_cast<unsigned long long *>(mask.data_ptr<int64_t>()));
  AT_CUDA_CHECK(cudaGetLastError());
  const auto mask_cpu = mask.to(torch::kCPU);
  return keep_from_mask(reinterpret_cast<const unsigned long long *>(mask_cpu.data_ptr<int64_t>()), order, n, words);
}

torch::Tensor nms_rotated(const torch::Tensor &dets, const torch::Tensor &scores, double iou_threshold) {
  TORCH_CHECK(dets.is_cuda() && scores.is_cuda(), "nms_rotated: expected CUDA tensors");
  TORCH_CHECK(dets.size(1) == 5, "rotated boxes should be (N, 5), got ", dets.sizes());
  const at::cuda::CUDAGuard device_guard(dets.device());
  const auto order = std::get<1>(scores.sort(0, /*descending=*/true));
  const auto sorted = dets.index_select(0, order).contiguous();
  const int64_t n = dets.size(0);
  auto mask = torch::zeros({n}, dets.options().dtype(torch::kLong));
  rotated_mask_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      static_cast<int>(n), static_cast<float>(iou_threshold), sorted.data_ptr<float>(),
      reinterpret_cast<unsigned long long *>(mask.data_ptr<int64_t>()));
  AT_CUDA_CHECK(cudaStreamSynchronize(at::cuda::getCurrentCUDAStream()));
  const auto *suppressed = mask.data_ptr<int64_t>();
  std::vector<int64_t> keep;
  for (int64_t i = 0; i < n; ++i)
    if (!suppressed[i]) // [[device-host-access]]
      keep.push_back(i);
  return order.index_select(0, torch::tensor(keep, torch::kLong).to(order.device()));
}

torch::Tensor box_overlaps(const torch::Tensor &a, const torch::Tensor &b) {
  TORCH_CHECK(a.is_cuda() && a.device() == b.device(), "box_overlaps: boxes on ", a.device(), " and ", b.device());
  const c10::cuda::CUDAGuard guard(a.device());
  const int n = a.size(0), m = b.size(0);
  auto out = torch::empty({n, m}, a.dtype());
  if (n == 0 || m == 0)
    return out;
  iou_kernel<<<(n * m + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-kernel-launch]]
      n, m, a.contiguous().data_ptr<float>(), b.contiguous().data_ptr<float>(), out.data_ptr<float>());
  AT_CUDA_CHECK(cudaGetLastError());
  return out;
}

torch::Tensor roi_align_forward(const torch::Tensor &input, const torch::Tensor &rois, double scale, int64_t pooled) {
  TORCH_CHECK(input.is_cuda(), "input must be a CUDA tensor");
  at::TensorArg input_t{input, "input", 1}, rois_t{rois, "rois", 2};
  at::checkAllSameGPU("roi_align_forward", {input_t, rois_t});
  at::cuda::CUDAGuard device_guard(input.device());
  const auto num_rois = rois.size(0), channels = input.size(1);
  auto output = torch::zeros({num_rois, channels, pooled, pooled}, input.options());
  const dim3 grid(std::max<int64_t>(1, std::min<int64_t>((output.numel() + 511) / 512, 4096)));
  auto input_ = input.contiguous(), rois_ = rois.contiguous();
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "roi_align_forward", [&] {
    roi_align_kernel<scalar_t><<<grid, dim3(512), 0, at::cuda::getCurrentCUDAStream()>>>(
        output.numel(), input_.data_ptr<scalar_t>(), rois_.data_ptr<scalar_t>(), static_cast<scalar_t>(scale), channels,
        input.size(2), input.size(3), pooled, output.data_ptr<scalar_t>());
  });
  AT_CUDA_CHECK(cudaGetLastError());
  return output;
}

torch::Tensor roi_align_backward(const torch::Tensor &grad, const torch::Tensor &rois, double scale, int64_t pooled,
                                 int64_t batch, int64_t height, int64_t width) {
  TORCH_CHECK(grad.is_cuda(), "grad must be a CUDA tensor");
  TORCH_CHECK(rois.is_cuda(), "rois must be a CUDA tensor");
  at::TensorArg grad_t{grad, "grad", 1}, rois_t{rois, "rois", 2};
  at::checkAllSameGPU("roi_align_backward", {grad_t, rois_t});
  const auto channels = grad.size(1);
  auto grad_input = torch::zeros({batch, channels, height, width}, grad.options());
  if (grad.numel() == 0)
    return grad_input;
  const dim3 grid(std::max<int64_t>(1, std::min<int64_t>((grad.numel() + 511) / 512, 4096)));
  auto grad_ = grad.contiguous(), rois_ = rois.contiguous();
  AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "roi_align_backward", [&] {
    roi_align_backward_kernel<scalar_t><<<grid, dim3(512), 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-missing-guard]]
        grad.numel(), grad_.data_ptr<scalar_t>(), rois_.data_ptr<scalar_t>(), static_cast<scalar_t>(scale), channels,
        height, width, pooled, grad_input.data_ptr<scalar_t>());
  });
  AT_CUDA_CHECK(cudaGetLastError());
  return grad_input;
}

TORCH_LIBRARY_IMPL(detops, CUDA, m) {
  m.impl("nms", &nms_kernel);
  m.impl("roi_align", &roi_align_forward);
  m.impl("_roi_align_backward", &roi_align_backward);
}

} // namespace detops
