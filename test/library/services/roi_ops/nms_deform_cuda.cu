#include "roi_ops.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace detops {

namespace {

constexpr int kBlock = 64;

template <typename T>
__global__ void nms_mask_kernel(int n, T threshold, const T* boxes, int64_t* mask) {
  const int row = blockIdx.y * kBlock + threadIdx.x;
  if (row < n)
    mask[row * gridDim.x + blockIdx.x] = boxes[row] > threshold;
}

__global__ void deform_im2col_kernel(int64_t count, const float* input, const float* offset, const float* mask,
                                     float* columns) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    columns[i] = input[i] * mask[i] + offset[i];
}

__global__ void deform_col2im_kernel(int64_t count, const float* columns, const float* offset, float* image) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    image[i] = columns[i] + offset[i];
}

at::Tensor sweep(const at::Tensor& mask, const at::Tensor& order, int n, int col_blocks) {
  const auto mask_cpu = mask.to(at::kCPU);
  const int64_t* bits = mask_cpu.data_ptr<int64_t>();
  std::vector<int64_t> removed(col_blocks);
  auto keep = at::empty({n}, at::kLong);
  int64_t* keep_out = keep.data_ptr<int64_t>();
  int64_t kept = 0;
  for (int i = 0; i < n; ++i) {
    if (removed[i / kBlock] & (int64_t(1) << (i % kBlock)))
      continue;
    keep_out[kept++] = i;
    for (int j = i / kBlock; j < col_blocks; ++j)
      removed[j] |= bits[i * col_blocks + j];
  }
  return order.index({keep.narrow(0, 0, kept).to(order.device())});
}

} // namespace

at::Tensor nms_cuda(const at::Tensor& dets, const at::Tensor& scores, double iou_threshold) {
  TORCH_CHECK(dets.is_cuda() && scores.is_cuda(), "nms needs CUDA tensors");
  at::cuda::CUDAGuard device_guard(dets.device());
  const int n = static_cast<int>(dets.size(0));
  if (n == 0)
    return at::empty({0}, dets.options().dtype(at::kLong));
  const auto order = std::get<1>(scores.sort(0, true));
  const auto sorted = dets.index_select(0, order).contiguous();
  const int col_blocks = (n + kBlock - 1) / kBlock;
  auto mask = at::zeros({n * col_blocks}, dets.options().dtype(at::kLong));
  AT_DISPATCH_FLOATING_TYPES(sorted.scalar_type(), "nms_cuda", [&] {
    nms_mask_kernel<scalar_t><<<dim3(col_blocks, col_blocks), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(
        n, static_cast<scalar_t>(iou_threshold), sorted.data_ptr<scalar_t>(), mask.data_ptr<int64_t>());
  });
  return sweep(mask, order, n, col_blocks);
}

at::Tensor nms_rotated_cuda(const at::Tensor& dets, const at::Tensor& scores, double iou_threshold) {
  TORCH_CHECK(dets.is_cuda() && scores.is_cuda(), "nms_rotated needs CUDA tensors");
  at::Tensor order;
  {
    at::cuda::CUDAGuard device_guard(dets.device());
    order = std::get<1>(scores.sort(0, true));
  }
  const auto sorted = dets.index_select(0, order).contiguous();
  const int n = static_cast<int>(dets.size(0)), col_blocks = (n + kBlock - 1) / kBlock;
  auto mask = at::zeros({n * col_blocks}, dets.options().dtype(at::kLong));
  AT_DISPATCH_FLOATING_TYPES(sorted.scalar_type(), "nms_rotated_cuda", [&] {
    nms_mask_kernel<scalar_t><<<dim3(col_blocks, col_blocks), kBlock>>>(n, static_cast<scalar_t>(iou_threshold), sorted.data_ptr<scalar_t>(), mask.data_ptr<int64_t>()); // [[device-missing-guard]]
  });
  return sweep(mask, order, n, col_blocks);
}

at::Tensor modulated_deform_im2col_cuda(const at::Tensor& input, const at::Tensor& offset, const at::Tensor& mask,
                                        int64_t kernel, int64_t stride, int64_t pad) {
  TORCH_CHECK(input.is_cuda() && offset.is_cuda() && mask.is_cuda());
  const int64_t height = (input.size(2) + 2 * pad - kernel) / stride + 1;
  const int64_t width = (input.size(3) + 2 * pad - kernel) / stride + 1;
  auto columns = at::zeros({input.size(1) * kernel * kernel, height * width}, at::device(at::kCUDA).dtype(at::kFloat)); // [[device-lost-index]]
  at::cuda::CUDAGuard device_guard(input.device());
  const int64_t count = columns.numel();
  deform_im2col_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      count, input.data_ptr<float>(), offset.data_ptr<float>(), mask.data_ptr<float>(), columns.data_ptr<float>());
  return columns;
}

at::Tensor modulated_deform_col2im_cuda(const at::Tensor& columns, const at::Tensor& offset, int64_t channels) {
  TORCH_CHECK(columns.is_cuda() && offset.is_cuda());
  const c10::OptionalDeviceGuard guard(at::device_of(columns));
  auto image = at::zeros({channels, columns.size(1)}, at::device(at::kCUDA).dtype(at::kFloat));
  deform_col2im_kernel<<<(image.numel() + 255) / 256, 256>>>(image.numel(), columns.data_ptr<float>(),
                                                             offset.data_ptr<float>(), image.data_ptr<float>());
  return image;
}

} // namespace detops
