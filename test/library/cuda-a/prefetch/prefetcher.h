#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace prefetch {

struct Batch {
  torch::Tensor images;  // uint8, NHWC
  torch::Tensor labels;  // int64
  torch::Tensor weights; // float, one for each sample
  int64_t epoch = 0;

  Batch to(torch::Device device, bool non_blocking) const;
};

struct PrefetchOptions {
  size_t depth = 2;
  bool pin = true;
  bool normalize = true;
  std::vector<float> mean{0.485f, 0.456f, 0.406f};
  std::vector<float> stddev{0.229f, 0.224f, 0.225f};
};

using Source = std::function<std::optional<Batch>()>;

/// Copies batches to a device on a stream of its own, some batches ahead.
class Prefetcher {
public:
  Prefetcher(Source source, torch::Device device, PrefetchOptions options = {});

  std::optional<Batch> next();
  std::optional<Batch> next_weighted();
  size_t pending() const { return queue_.size(); }
  double label_entropy(const Batch &batch, int64_t classes) const;

private:
  struct Slot {
    Batch host, device;
    at::cuda::CUDAEvent ready;
  };
  bool fill();

  Source source_;
  torch::Device device_;
  PrefetchOptions options_;
  c10::cuda::CUDAStream stream_;
  std::deque<Slot> queue_;
};

Batch repin(const Batch &batch);
Batch repin_device(const Batch &batch, torch::Device device);
std::vector<uint8_t> thumbnail(const Batch &batch, torch::Device device, int64_t index);
std::vector<uint8_t> thumbnail_async(const Batch &batch, torch::Device device, int64_t index);
torch::Tensor wrap_frame(std::vector<uint8_t> &pixels, int64_t height, int64_t width, torch::Device device);
torch::Tensor wrap_frame_pinned(std::vector<uint8_t> &pixels, int64_t height, int64_t width, torch::Device device);
torch::Tensor upload_mean(const torch::Tensor &stack, torch::Device device);
torch::Tensor upload_last(const torch::Tensor &stack, torch::Device device);

class Normalizer {
public:
  Normalizer(const PrefetchOptions &options, torch::Device device);

  torch::Tensor operator()(const torch::Tensor &images) const;
  torch::Tensor on_stream(const torch::Tensor &images) const;
  torch::Tensor invert(const torch::Tensor &images) const;
  torch::Tensor zero_copy(const torch::Tensor &images) const;

private:
  torch::Device device_;
  torch::Tensor mean_, stddev_;
  c10::cuda::CUDAStream side_;
};

void normalize_all(std::vector<torch::Tensor> images, const std::vector<Normalizer> &normalizers);
void scale_all(std::vector<torch::Tensor> &images, float factor);

} // namespace prefetch
