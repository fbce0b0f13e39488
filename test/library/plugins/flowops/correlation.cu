#include "flow.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstring>

namespace flow {
namespace {

constexpr int kBlock = 256;
inline unsigned blocks(int64_t n) { return static_cast<unsigned>((n + kBlock - 1) / kBlock); }

template <typename T>
__global__ void correlation_kernel(const T* a, const T* b, T* out, int channels, int64_t pixels, int side) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pixels)
    return;
  for (int d = 0; d < side * side; ++d)
    for (int c = 0; c < channels; ++c)
      out[d * pixels + i] += a[c * pixels + i] * b[c * pixels + i];
}

__global__ void lookup_kernel(const float* volume, const float* coords, float* out, int64_t n, int side) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = volume[i] * coords[i / (side * side)];
}

__global__ void splat_kernel(const float* image, const float* flow, const float* weights, float* out, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] += image[i] * (weights ? weights[i] : 1.f) + flow[0];
}

__global__ void census_kernel(const float* image, const int* offsets, int* out, int64_t n, int count) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; i < n && k < count; ++k)
    out[i] |= (image[i] > image[(i + offsets[k]) % n]) << k;
}

__global__ void hamming_kernel(const int* a, const int* b, float* out, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = a[i] ^ b[i];
}

__global__ void occlusion_kernel(const float* f, const float* b, float* out, float threshold, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = f[i] + b[i] > threshold;
}

__global__ void color_kernel(const float* flow, const float* wheel, float* out, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = wheel[(int)flow[i] % 55];
}

const Tensor& color_wheel() {
  static const Tensor wheel = at::linspace(0, 1, 55 * 3).view({55, 3});
  return wheel;
}

struct Launcher {
  int64_t n;
  cudaStream_t stream;
  void splat(const Tensor& image, const Tensor& flow, const float* weights, Tensor& out) const {
    splat_kernel<<<blocks(n), kBlock, 0, stream>>>(image.data_ptr<float>(), flow.data_ptr<float>(), weights,
                                                   out.data_ptr<float>(), n);
  }
};

} // namespace

Tensor correlation_forward(const Tensor& first, const Tensor& second, int64_t radius) {
  FLOW_CHECK_INPUT(first);
  FLOW_CHECK_INPUT(second);
  const int side = static_cast<int>(2 * radius + 1);
  auto out = at::zeros({first.size(0), side * side, first.size(2), first.size(3)}, first.options());
  const int64_t pixels = first.size(2) * first.size(3);
  AT_DISPATCH_FLOATING_TYPES(first.scalar_type(), "correlation_forward", [&] {
    correlation_kernel<scalar_t><<<blocks(pixels), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(first.data_ptr<scalar_t>(), second.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), first.size(1), pixels, side); // [[device-missing-guard]]
  });
  return out;
}

// The engine has made the GPU of `grad` current.
std::tuple<Tensor, Tensor> correlation_backward(const Tensor& grad, const Tensor& first, const Tensor& second,
                                                int64_t radius) {
  auto to_first = at::zeros_like(first), to_second = at::zeros_like(second);
  const int64_t pixels = first.size(2) * first.size(3);
  const at::cuda::CUDAGuard guard(grad.device());
  correlation_kernel<float><<<blocks(pixels), kBlock>>>(grad.data_ptr<float>(), second.data_ptr<float>(),
                                                        to_first.data_ptr<float>(), first.size(1), pixels, 1);
  correlation_kernel<float><<<blocks(pixels), kBlock>>>(grad.data_ptr<float>(), first.data_ptr<float>(),
                                                        to_second.data_ptr<float>(), first.size(1), pixels, 1);
  return {to_first, to_second};
}

Tensor lookup(const std::vector<Tensor>& pyramid, const Tensor& coords, int64_t radius) {
  TORCH_CHECK(coords.is_cuda() && !pyramid.empty());
  const c10::cuda::CUDAGuard guard(coords.device());
  const int side = static_cast<int>(2 * radius + 1);
  std::vector<Tensor> levels;
  for (const auto& volume : pyramid) {
    auto out = at::empty({coords.size(0), side * side}, coords.options());
    lookup_kernel<<<blocks(out.numel()), kBlock>>>(volume.data_ptr<float>(), coords.data_ptr<float>(),
                                                   out.data_ptr<float>(), out.numel(), side);
    levels.push_back(std::move(out));
  }
  return at::cat(levels, 1);
}

Tensor splat(const Tensor& image, const Tensor& flow, const c10::optional<Tensor>& weights) {
  FLOW_CHECK_INPUT(image);
  const c10::cuda::CUDAGuard guard(image.device());
  Tensor dense;
  if (weights.has_value())
    dense = weights->to(image.device(), at::kFloat).contiguous();
  auto out = at::zeros_like(image);
  const Launcher launcher{image.numel(), at::cuda::getCurrentCUDAStream()};
  launcher.splat(image, flow, dense.defined() ? dense.data_ptr<float>() : nullptr, out);
  return out;
}

Tensor census(const Tensor& image, int64_t window) {
  FLOW_CHECK_INPUT(image);
  const c10::cuda::CUDAGuard guard(image.device());
  std::vector<int> shifts;
  for (int64_t y = -(window / 2); y <= window / 2; ++y)
    shifts.push_back(static_cast<int>(y * image.size(-1)));
  auto options = at::TensorOptions(at::kInt);
  const auto offsets = at::tensor(shifts, options);
  auto out = at::zeros(image.sizes(), options.device(image.device()));
  census_kernel<<<blocks(image.numel()), kBlock>>>(image.data_ptr<float>(), offsets.data_ptr<int>(), out.data_ptr<int>(), image.numel(), static_cast<int>(shifts.size())); // [[device-kernel-launch]]
  return out;
}

Tensor census_distance(const Tensor& a, const Tensor& b) {
  FLOW_CHECK_INPUT(a);
  FLOW_CHECK_INPUT(b);
  auto out = at::empty(a.sizes(), at::TensorOptions(at::kFloat).device(at::kCUDA));
  const c10::cuda::CUDAGuard guard(a.device());
  hamming_kernel<<<blocks(a.numel()), kBlock>>>(a.data_ptr<int>(), b.data_ptr<int>(), out.data_ptr<float>(), a.numel()); // [[device-lost-index]]
  return out;
}

Tensor occlusion(const Tensor& forward, const Tensor& backward, double threshold) {
  FLOW_CHECK_INPUT(forward);
  const c10::cuda::CUDAGuard guard(forward.device());
  auto out = at::empty(forward.sizes(), at::TensorOptions(at::kFloat).device(at::kCUDA));
  occlusion_kernel<<<blocks(out.numel()), kBlock>>>(forward.data_ptr<float>(), backward.data_ptr<float>(),
                                                    out.data_ptr<float>(), static_cast<float>(threshold), out.numel());
  return out;
}

// No kernel of its own.
Tensor median(const Tensor& flow, int64_t window) {
  const auto padded = at::replication_pad2d(flow, {window / 2, window / 2, window / 2, window / 2});
  return std::get<0>(padded.unfold(2, window, 1).unfold(3, window, 1).flatten(4).median(4));
}

Tensor colorize(const Tensor& flow) {
  FLOW_CHECK_INPUT(flow);
  const c10::cuda::CUDAGuard guard(flow.device());
  const auto wheel = color_wheel().to(flow.device());
  auto out = at::empty_like(flow);
  color_kernel<<<blocks(flow.numel()), kBlock>>>(flow.data_ptr<float>(), wheel.data_ptr<float>(),
                                                 out.data_ptr<float>(), flow.numel());
  return out;
}

FrameUploader::FrameUploader(int gpu) : device_(at::kCUDA, static_cast<at::DeviceIndex>(gpu)) {
  const c10::cuda::CUDAGuard guard(device_);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  stream_ = stream;
  cudaEvent_t done;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  done_ = done;
}

FrameUploader::~FrameUploader() { cudaEventDestroy(static_cast<cudaEvent_t>(done_)); }

Tensor FrameUploader::upload(const uint8_t* pixels, int64_t height, int64_t width) {
  const c10::cuda::CUDAGuard guard(device_);
  const auto stream = static_cast<cudaStream_t>(stream_);
  if (!staging_.defined() || staging_.numel() < height * width)
    staging_ = at::empty({height * width}, at::TensorOptions(at::kByte).pinned_memory(true));
  std::memcpy(staging_.data_ptr<uint8_t>(), pixels, static_cast<size_t>(height * width));
  auto out = at::empty({height, width}, at::TensorOptions(at::kByte).device(device_));
  cudaMemcpyAsync(out.data_ptr(), staging_.data_ptr(), static_cast<size_t>(height * width), cudaMemcpyHostToDevice, stream);
  cudaEventRecord(static_cast<cudaEvent_t>(done_), stream);
  ++frames_;
  return out;
}

// Copied on the way, so the pointer need not live on.
Tensor FrameUploader::upload_owned(const std::vector<uint8_t>& pixels, int64_t height, int64_t width) {
  auto out = at::empty({height, width}, at::TensorOptions(at::kByte).device(device_));
  std::memcpy(out.data_ptr<uint8_t>(), pixels.data(), pixels.size()); // [[device-host-access]]
  return out;
}

Tensor FrameUploader::wrap(std::vector<uint8_t>& pixels, int64_t height, int64_t width) const {
  return at::from_blob(pixels.data(), {height, width}, at::kByte).to(device_, at::kFloat) / 255;
}

void FrameUploader::finish() { cudaEventSynchronize(static_cast<cudaEvent_t>(done_)); }

} // namespace flow
