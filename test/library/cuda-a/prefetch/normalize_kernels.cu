#include "prefetcher.h"

#include <exception>
#include <mutex>
#include <thread>

namespace prefetch {
namespace {

__global__ void normalize_kernel(const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ mean,
                                 const float *__restrict__ stddev, int64_t channels, int64_t plane, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total)
    return;
  const int64_t c = i / plane % channels;
  out[i] = (in[i] - mean[c]) / stddev[c];
}

__global__ void scale_kernel(float *data, float factor, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < total)
    data[i] *= factor;
}

inline unsigned blocks(int64_t n) { return static_cast<unsigned>((n + 255) / 256); }

} // namespace

Normalizer::Normalizer(const PrefetchOptions &options, torch::Device device)
    : device_(device), mean_(torch::tensor(options.mean).to(device)), stddev_(torch::tensor(options.stddev).to(device)),
      side_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false)) {
  TORCH_CHECK(options.mean.size() == options.stddev.size(), "one deviation per mean is expected");
}

torch::Tensor Normalizer::operator()(const torch::Tensor &images) const {
  TORCH_CHECK(images.device() == device_, "images on ", images.device(), ", normalizer on ", device_);
  const c10::cuda::CUDAGuard guard(device_);
  auto in = images.to(torch::kFloat).contiguous();
  auto out = torch::empty_like(in);
  normalize_kernel<<<blocks(in.numel()), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      in.data_ptr<float>(), out.data_ptr<float>(), mean_.data_ptr<float>(), stddev_.data_ptr<float>(), in.size(1),
      in.size(2) * in.size(3), in.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor Normalizer::on_stream(const torch::Tensor &images) const {
  TORCH_CHECK(images.device() == device_, "images on ", images.device(), ", normalizer on ", device_);
  const c10::cuda::CUDAGuard guard(device_);
  auto in = images.to(torch::kFloat).contiguous();
  auto out = torch::empty_like(in);
  at::cuda::CUDAEvent ready;
  ready.record(at::cuda::getCurrentCUDAStream());
  ready.block(side_);
  normalize_kernel<<<blocks(in.numel()), 256, 0, side_>>>( // [[device-lost-index]]
      in.data_ptr<float>(), out.data_ptr<float>(), mean_.data_ptr<float>(), stddev_.data_ptr<float>(), in.size(1),
      in.size(2) * in.size(3), in.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor Normalizer::invert(const torch::Tensor &images) const {
  TORCH_CHECK(images.device() == device_, "images on ", images.device(), ", normalizer on ", device_);
  auto in = images.contiguous();
  auto out = torch::empty_like(in);
  auto stddev = stddev_.reciprocal(), mean = -mean_ / stddev_;
  normalize_kernel<<<blocks(in.numel()), 256, 0, at::cuda::getCurrentCUDAStream(device_.index())>>>( // [[device-missing-guard]]
      in.data_ptr<float>(), out.data_ptr<float>(), mean.data_ptr<float>(), stddev.data_ptr<float>(), in.size(1),
      in.size(2) * in.size(3), in.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

/// Small batches are read by the kernel where they are: pinned memory is mapped.
torch::Tensor Normalizer::zero_copy(const torch::Tensor &images) const {
  TORCH_CHECK(images.device().is_cpu(), "zero_copy: expected images on the host");
  const auto in = images.to(torch::kFloat).contiguous().pin_memory();
  const c10::cuda::CUDAGuard guard(device_);
  auto out = torch::empty(in.sizes(), torch::dtype(torch::kFloat).device(device_));
  normalize_kernel<<<blocks(in.numel()), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      in.data_ptr<float>(), out.data_ptr<float>(), mean_.data_ptr<float>(), stddev_.data_ptr<float>(), in.size(1),
      in.size(2) * in.size(3), in.numel());
  C10_CUDA_CHECK(cudaStreamSynchronize(at::cuda::getCurrentCUDAStream()));
  return out;
}

void normalize_all(std::vector<torch::Tensor> images, const std::vector<Normalizer> &normalizers) {
  TORCH_CHECK(images.size() == normalizers.size());
  std::vector<std::thread> workers;
  for (size_t i = 0; i < images.size(); ++i)
    workers.emplace_back([&images, &normalizers, i] { images[i] = normalizers[i](images[i]); });
  for (auto &worker : workers)
    worker.join();
}

void scale_all(std::vector<torch::Tensor> &images, float factor) {
  std::mutex mutex;
  std::exception_ptr error;
  for (auto &image : images) {
    TORCH_CHECK(image.is_cuda() && image.is_contiguous());
    const c10::cuda::CUDAGuard guard(image.device());
    std::thread worker([&] {
      try {
        scale_kernel<<<blocks(image.numel()), 256>>>(image.data_ptr<float>(), factor, image.numel()); // [[device-missing-guard]]
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        error = std::current_exception();
      }
    });
    worker.join();
  }
  if (error)
    std::rethrow_exception(error);
}

} // namespace prefetch
