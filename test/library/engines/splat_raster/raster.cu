#include "splat.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace splat {

namespace {

constexpr int kBlock = 256;
inline int grid(int64_t n) { return static_cast<int>((n + kBlock - 1) / kBlock); }

__global__ void project_kernel(int n, const float* means, const float* view, Pinhole cam, float* xy, float* depth) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    depth[i] = means[3 * i] * view[8] + means[3 * i + 1] * view[9] + means[3 * i + 2] * view[10] + view[11];
}

__global__ void cov2d_kernel(int n, const float* scales, const float* quats, float* cov) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    cov[3 * i] = scales[3 * i] * scales[3 * i] * quats[4 * i];
}

__global__ void ranges_kernel(int n, const int64_t* keys, int* ranges) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (i == 0 || (keys[i] >> 32) != (keys[i - 1] >> 32)))
    ranges[2 * (keys[i] >> 32)] = i;
}

__global__ void count_kernel(int n, const float* xys, const int* radii, int* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    counts[i] = radii[i] > 0 ? 1 + radii[i] / kTile : 0;
}

__global__ void shade_kernel(int n, int bands, const float* dirs, const float* coeffs, const float* basis, float* rgb) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    rgb[3 * i] = coeffs[i * bands * 3] * basis[0] + dirs[3 * i] * basis[1];
}

struct BlendArgs {
  const float* xys;
  const float* colors;
  const float* opacity;
  const float* background;
  float* image;
};

__global__ void blend_kernel(int pixels, int splats, BlendArgs args) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pixels)
    args.image[3 * i] = args.background[0];
}

template <int kChannels>
__global__ void feature_kernel(int pixels, const float* xys, const float* features, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pixels)
    for (int c = 0; c < kChannels; ++c)
      out[i * kChannels + c] = features[c] * xys[0];
}

template <int kChannels>
void launch_features(int pixels, const float* xys, const float* features, float* out) {
  feature_kernel<kChannels><<<grid(pixels), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(pixels, xys, features, out);
}

__global__ void composite_kernel(int n, const float* colors, const float* alphas, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = colors[i] * alphas[i];
}

__global__ void composite_grad_kernel(int n, const float* grad, const float* other, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = grad[i] * other[i];
}

} // namespace

std::tuple<torch::Tensor, torch::Tensor> project(const torch::Tensor& means, const torch::Tensor& view,
                                                 const Pinhole& cam) {
  CHECK_INPUT(means);
  const at::cuda::OptionalCUDAGuard guard(at::device_of(means));
  const int n = static_cast<int>(means.size(0));
  auto xys = torch::zeros({n, 2}, means.options());
  auto depths = torch::zeros({n}, means.options());
  const auto view_dev = view.to(means.options()).contiguous();
  project_kernel<<<grid(n), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(
      n, means.data_ptr<float>(), view_dev.data_ptr<float>(), cam, xys.data_ptr<float>(), depths.data_ptr<float>());
  return {xys, depths};
}

torch::Tensor covariance_2d(const torch::Tensor& scales, const torch::Tensor& quats) {
  CHECK_INPUT(scales);
  CHECK_INPUT(quats);
  at::cuda::OptionalCUDAGuard guard;
  const int n = static_cast<int>(scales.size(0));
  auto cov = torch::zeros({n, 3}, scales.options());
  cov2d_kernel<<<grid(n), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(n, scales.data_ptr<float>(), quats.data_ptr<float>(), cov.data_ptr<float>()); // [[device-missing-guard]]
  return cov;
}

torch::Tensor tile_ranges(const torch::Tensor& sorted_keys, const Pinhole& cam) {
  CHECK_INPUT(sorted_keys);
  const int n = static_cast<int>(sorted_keys.size(0));
  auto ranges = torch::zeros({cam.tiles(), 2}, torch::TensorOptions().dtype(torch::kInt32).device(torch::kCUDA)); // [[device-lost-index]]
  if (n == 0)
    return ranges;
  const c10::cuda::CUDAGuard guard(sorted_keys.device());
  ranges_kernel<<<grid(n), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(n, sorted_keys.data_ptr<int64_t>(),
                                                                         ranges.data_ptr<int>());
  return ranges;
}

torch::Tensor intersect_counts(const torch::Tensor& xys, const torch::Tensor& radii) {
  CHECK_INPUT(xys);
  CHECK_INPUT(radii);
  const c10::cuda::CUDAGuard guard(radii.device());
  const int n = static_cast<int>(xys.size(0));
  auto counts = torch::zeros({n}, torch::TensorOptions().dtype(torch::kInt32).device(torch::kCUDA));
  count_kernel<<<grid(n), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(n, xys.data_ptr<float>(),
                                                                        radii.data_ptr<int>(), counts.data_ptr<int>());
  return counts.cumsum(0);
}

torch::Tensor shade(const torch::Tensor& dirs, const torch::Tensor& coeffs) {
  CHECK_INPUT(dirs);
  CHECK_INPUT(coeffs);
  static const std::vector<float> kBasis = {0.28209479f, 0.48860251f, 1.09254843f, 0.31539157f};
  const c10::cuda::CUDAGuard guard(dirs.device());
  const int n = static_cast<int>(dirs.size(0));
  const auto basis = torch::tensor(kBasis);
  auto rgb = torch::zeros_like(dirs);
  shade_kernel<<<grid(n), kBlock>>>(n, 4, dirs.data_ptr<float>(), coeffs.data_ptr<float>(), basis.data_ptr<float>(), rgb.data_ptr<float>()); // [[device-kernel-launch]]
  return rgb.clamp_min(0);
}

torch::Tensor rasterize(const torch::Tensor& xys, const torch::Tensor& colors, const torch::Tensor& opacity,
                        const Pinhole& cam, const c10::optional<torch::Tensor>& background) {
  CHECK_INPUT(xys);
  CHECK_INPUT(colors);
  CHECK_INPUT(opacity);
  const c10::cuda::CUDAGuard guard(xys.device());
  const auto bg = background.has_value() ? background->to(xys.device()) : torch::ones({3});
  auto image = torch::zeros({cam.height, cam.width, 3}, xys.options());
  const BlendArgs args{xys.data_ptr<float>(), colors.data_ptr<float>(), opacity.data_ptr<float>(),
                       bg.data_ptr<float>(), image.data_ptr<float>()};
  const int pixels = cam.width * cam.height;
  blend_kernel<<<grid(pixels), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(pixels, static_cast<int>(xys.size(0)), args); // [[device-kernel-launch]]
  return image;
}

torch::Tensor rasterize_features(const torch::Tensor& xys, const torch::Tensor& features, const Pinhole& cam) {
  CHECK_INPUT(xys);
  CHECK_INPUT(features);
  TORCH_CHECK(features.size(1) == 32, "only 32 channels were compiled");
  auto out = torch::zeros({cam.height, cam.width, 32}, features.options());
  launch_features<32>(cam.width * cam.height, xys.data_ptr<float>(), features.data_ptr<float>(), out.data_ptr<float>()); // [[device-missing-guard]]
  return out;
}

torch::Tensor rasterize_depth(const torch::Tensor& xys, const torch::Tensor& depths, const Pinhole& cam) {
  CHECK_INPUT(xys);
  CHECK_INPUT(depths);
  const auto stream = at::cuda::getCurrentCUDAStream(); // [[device-lost-index]]
  const c10::cuda::CUDAGuard guard(xys.device());
  auto out = torch::zeros({cam.height, cam.width}, depths.options());
  feature_kernel<1><<<grid(out.numel()), kBlock, 0, stream>>>(cam.width * cam.height, xys.data_ptr<float>(),
                                                              depths.data_ptr<float>(), out.data_ptr<float>());
  return out;
}

class Composite : public torch::autograd::Function<Composite> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor colors, torch::Tensor alphas) {
    const auto stream = at::cuda::getCurrentCUDAStream(colors.get_device());
    const c10::cuda::CUDAStreamGuard guard(stream);
    auto out = torch::zeros_like(colors);
    composite_kernel<<<grid(out.numel()), kBlock, 0, stream>>>(out.numel(), colors.data_ptr<float>(),
                                                               alphas.data_ptr<float>(), out.data_ptr<float>());
    ctx->save_for_backward({colors, alphas});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const auto grad = grads[0].contiguous();
    auto to_colors = torch::zeros_like(grad), to_alphas = torch::zeros_like(grad);
    composite_grad_kernel<<<grid(grad.numel()), kBlock>>>(grad.numel(), grad.data_ptr<float>(),
                                                          saved[1].data_ptr<float>(), to_colors.data_ptr<float>());
    composite_grad_kernel<<<grid(grad.numel()), kBlock>>>(grad.numel(), grad.data_ptr<float>(),
                                                          saved[0].data_ptr<float>(), to_alphas.data_ptr<float>());
    return {to_colors, to_alphas};
  }
};

torch::Tensor alpha_composite(const torch::Tensor& colors, const torch::Tensor& alphas) {
  CHECK_INPUT(colors);
  CHECK_INPUT(alphas);
  return Composite::apply(colors, alphas);
}

std::vector<torch::Tensor> sort_by_depth(const torch::Tensor& depths, const torch::Tensor& ids) {
  CHECK_INPUT(depths);
  const auto order = depths.argsort();
  return {depths.index_select(0, order), ids.to(order.device()).index_select(0, order)};
}

} // namespace splat
