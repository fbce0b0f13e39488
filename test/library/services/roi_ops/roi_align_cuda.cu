#include "roi_ops.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace detops {

namespace {

constexpr int kThreads = 512;

int blocks_for(int64_t count) { return static_cast<int>(std::min<int64_t>((count + kThreads - 1) / kThreads, 4096)); }

struct LevelTable {
  const float* scales;
  const int64_t* level_of_roi;
  int levels;
};

template <typename T>
__global__ void roi_align_kernel(int64_t count, const T* input, const T* rois, T* output, float scale, int ratio) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)
    output[i] = input[i] * static_cast<T>(scale) + rois[i % ratio];
}

template <typename T>
__global__ void multilevel_kernel(int64_t count, const T* input, const T* rois, T* output, LevelTable table) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    output[i] = input[i] * table.scales[table.level_of_roi[i]] + rois[i];
}

__global__ void roi_pool_kernel(int64_t count, const float* input, const float* rois, float* output, int* argmax) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    output[i] = input[i] + rois[0];
    argmax[i] = static_cast<int>(i);
  }
}

__global__ void roi_pool_grad_kernel(int64_t count, const float* grad, const int* argmax, float* grad_input) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    grad_input[argmax[i]] += grad[i];
}

__global__ void ps_pool_kernel(int64_t count, const float* input, const float* rois, float* output, float scale) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    output[i] = input[i] * scale + rois[0];
}

at::Tensor roi_pool_grad(const at::Tensor& grad, const at::Tensor& argmax, at::IntArrayRef sizes) {
  auto grad_input = at::zeros(sizes, grad.options());
  auto g = grad.contiguous();
  roi_pool_grad_kernel<<<blocks_for(g.numel()), kThreads>>>(g.numel(), g.data_ptr<float>(), argmax.data_ptr<int>(),
                                                            grad_input.data_ptr<float>());
  return grad_input;
}

class RoiPoolFunction : public torch::autograd::Function<RoiPoolFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& input, const at::Tensor& rois,
                            double scale, int64_t pooled) {
    TORCH_CHECK(input.is_cuda() && rois.is_cuda(), "roi_pool needs CUDA tensors");
    at::cuda::CUDAGuard device_guard(input.device());
    auto output = at::zeros({rois.size(0), input.size(1), pooled, pooled}, input.options());
    auto argmax = at::zeros(output.sizes(), input.options().dtype(at::kInt));
    auto scaled = rois * scale;
    roi_pool_kernel<<<blocks_for(output.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        output.numel(), input.data_ptr<float>(), scaled.data_ptr<float>(), output.data_ptr<float>(),
        argmax.data_ptr<int>());
    ctx->save_for_backward({argmax});
    ctx->saved_data["sizes"] = input.sizes().vec();
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    auto argmax = ctx->get_saved_variables()[0];
    auto sizes = ctx->saved_data["sizes"].toIntVector();
    return {roi_pool_grad(grads[0], argmax, sizes), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

} // namespace

at::Tensor roi_align_forward_cuda(const at::Tensor& input, const at::Tensor& rois, const RoiAlignArgs& args) {
  TORCH_CHECK(input.is_cuda(), "input must be a CUDA tensor");
  TORCH_CHECK(input.device() == rois.device(), "input and rois must share a device");
  at::cuda::CUDAGuard device_guard(input.device());
  auto output = at::zeros({rois.size(0), input.size(1), args.pooled_height, args.pooled_width}, input.options());
  if (output.numel() == 0)
    return output;
  auto input_ = input.contiguous(), rois_ = rois.contiguous();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(input.scalar_type(), "roi_align_forward_cuda", [&] {
    roi_align_kernel<scalar_t><<<blocks_for(output.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        output.numel(), input_.data_ptr<scalar_t>(), rois_.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(),
        static_cast<float>(args.spatial_scale), static_cast<int>(args.sampling_ratio));
  });
  return output;
}

at::Tensor multilevel_roi_align_cuda(const at::Tensor& packed, const at::Tensor& rois, const at::Tensor& levels,
                                     at::ArrayRef<double> scales, int64_t pooled) {
  TORCH_CHECK(packed.is_cuda() && rois.is_cuda() && levels.is_cuda());
  at::cuda::CUDAGuard device_guard(packed.device());
  const auto scale_values = at::tensor(scales, at::kFloat);
  auto output = at::empty({rois.size(0), packed.size(0), pooled, pooled}, packed.options());
  LevelTable table{scale_values.data_ptr<float>(), levels.data_ptr<int64_t>(), static_cast<int>(scales.size())};
  AT_DISPATCH_FLOATING_TYPES(packed.scalar_type(), "multilevel_roi_align", [&] {
    multilevel_kernel<scalar_t><<<blocks_for(output.numel()), kThreads>>>(output.numel(), packed.data_ptr<scalar_t>(), rois.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), table); // [[device-kernel-launch]]
  });
  return output;
}

void ps_roi_pool_launch(const at::Tensor& input, const at::Tensor& rois, at::Tensor& output, float scale) {
  ps_pool_kernel<<<blocks_for(output.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      output.numel(), input.data_ptr<float>(), rois.data_ptr<float>(), output.data_ptr<float>(), scale);
}

at::Tensor roi_pool(const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled) {
  return RoiPoolFunction::apply(input, rois, spatial_scale, pooled);
}

} // namespace detops
