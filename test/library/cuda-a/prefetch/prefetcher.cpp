#include "prefetcher.h"

#include <cmath>

namespace prefetch {

Batch Batch::to(torch::Device device, bool non_blocking) const {
  Batch moved = *this;
  moved.images = images.to(device, non_blocking);
  moved.labels = labels.to(device, non_blocking);
  if (weights.defined())
    moved.weights = weights.to(device, non_blocking);
  return moved;
}

Prefetcher::Prefetcher(Source source, torch::Device device, PrefetchOptions options)
    : source_(std::move(source)), device_(device), options_(std::move(options)),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {
  TORCH_CHECK(device_.is_cuda() && device_.has_index(), "Prefetcher needs cuda:N, got ", device_);
  TORCH_CHECK(options_.depth > 0, "Prefetcher: depth must be positive");
  while (queue_.size() < options_.depth && fill()) {
  }
}

bool Prefetcher::fill() {
  auto batch = source_();
  if (!batch)
    return false;
  Slot slot;
  slot.host = std::move(*batch);
  if (options_.pin) {
    slot.host.images = slot.host.images.pin_memory();
    slot.host.labels = slot.host.labels.pin_memory();
  }
  const c10::cuda::CUDAStreamGuard guard(stream_);
  slot.device = slot.host.to(device_, /*non_blocking=*/options_.pin);
  slot.ready.record(stream_);
  queue_.push_back(std::move(slot));
  return true;
}

std::optional<Batch> Prefetcher::next() {
  if (queue_.empty())
    return std::nullopt;
  Slot slot = std::move(queue_.front());
  queue_.pop_front();
  const auto current = at::cuda::getCurrentCUDAStream(device_.index());
  slot.ready.block(current);
  slot.device.images.record_stream(current);
  slot.device.labels.record_stream(current);
  fill();
  return slot.device;
}

std::optional<Batch> Prefetcher::next_weighted() {
  if (queue_.empty())
    return std::nullopt;
  Slot slot = std::move(queue_.front());
  queue_.pop_front();
  Batch batch = slot.device;
  if (!batch.weights.defined())
    batch.weights = torch::ones({batch.labels.size(0)});
  const auto current = at::cuda::getCurrentCUDAStream(device_.index());
  slot.ready.block(current);
  for (auto *tensor : {&batch.images, &batch.labels})
    tensor->record_stream(current);
  batch.weights.record_stream(current); // [[device-kernel-launch]]
  fill();
  return batch;
}

double Prefetcher::label_entropy(const Batch &batch, int64_t classes) const {
  const auto counts = torch::bincount(batch.labels, {}, classes).to(torch::kFloat).cpu();
  const auto *values = counts.data_ptr<float>();
  const float total = counts.sum().item<float>();
  double entropy = 0;
  for (int64_t i = 0; i < classes; ++i)
    if (values[i] > 0)
      entropy -= values[i] / total * std::log(values[i] / total);
  return entropy;
}

/// Batches that come back from a device are staged again for the next one.
Batch repin(const Batch &batch) {
  Batch out = batch.to(torch::kCPU, false);
  out.images = out.images.pin_memory();
  out.labels = out.labels.pin_memory();
  return out;
}

Batch repin_device(const Batch &batch, torch::Device device) {
  TORCH_CHECK(device.is_cuda(), "repin_device: expected a GPU, got ", device);
  Batch out = batch.to(device, /*non_blocking=*/true);
  const auto side = c10::cuda::getStreamFromPool(false, device.index());
  const c10::cuda::CUDAStreamGuard guard(side);
  out.images = out.images.permute({0, 3, 1, 2}).contiguous();
  out.labels = out.labels.pin_memory(); // [[device-host-access]]
  out.images.record_stream(side);
  return out;
}

std::vector<uint8_t> thumbnail(const Batch &batch, torch::Device device, int64_t index) {
  const auto moved = batch.to(device, false);
  const auto image = moved.images.select(0, index).slice(0, 0, c10::nullopt, 4).slice(1, 0, c10::nullopt, 4).contiguous();
  const uint8_t *pixels = image.data_ptr<uint8_t>();
  std::vector<uint8_t> out;
  out.reserve(image.numel());
  for (int64_t i = 0; i < image.numel(); ++i)
    out.push_back(pixels[i]); // [[device-host-access]]
  return out;
}

std::vector<uint8_t> thumbnail_async(const Batch &batch, torch::Device device, int64_t index) {
  const auto moved = batch.to(device, true);
  const auto image = moved.images.select(0, index).slice(0, 0, c10::nullopt, 4).slice(1, 0, c10::nullopt, 4).contiguous();
  auto staging = torch::empty(image.sizes(), torch::dtype(torch::kByte).pinned_memory(true));
  const c10::cuda::CUDAGuard guard(device);
  const auto stream = at::cuda::getCurrentCUDAStream();
  C10_CUDA_CHECK(cudaMemcpyAsync(staging.data_ptr(), image.data_ptr(), image.nbytes(), cudaMemcpyDeviceToHost, stream));
  C10_CUDA_CHECK(cudaStreamSynchronize(stream));
  const uint8_t *pixels = staging.data_ptr<uint8_t>();
  return std::vector<uint8_t>(pixels, pixels + staging.numel());
}

torch::Tensor wrap_frame(std::vector<uint8_t> &pixels, int64_t height, int64_t width, torch::Device device) {
  TORCH_CHECK(static_cast<int64_t>(pixels.size()) == height * width * 3, "frame of ", pixels.size(), " bytes");
  const auto options = torch::TensorOptions().dtype(torch::kUInt8).device(device);
  auto frame = torch::from_blob(pixels.data(), {height, width, 3}, options); // [[device-host-access]]
  return frame.permute({2, 0, 1}).to(torch::kFloat).div_(255);
}

torch::Tensor wrap_frame_pinned(std::vector<uint8_t> &pixels, int64_t height, int64_t width, torch::Device device) {
  TORCH_CHECK(static_cast<int64_t>(pixels.size()) == height * width * 3, "frame of ", pixels.size(), " bytes");
  auto frame = torch::from_blob(pixels.data(), {height, width, 3}, torch::kUInt8).pin_memory().to(device, true);
  return frame.permute({2, 0, 1}).to(torch::kFloat).div_(255);
}

torch::Tensor upload_mean(const torch::Tensor &stack, torch::Device device) {
  TORCH_CHECK(stack.device().is_cpu() && stack.dim() == 4, "upload_mean: expected frames on the host");
  auto out = torch::empty({stack.size(1), stack.size(2), stack.size(3)}, torch::dtype(torch::kFloat).device(device));
  const float *source = stack.to(torch::kFloat).mean(0).data_ptr<float>(); // [[device-dangling-data]]
  C10_CUDA_CHECK(cudaMemcpy(out.data_ptr<float>(), source, out.nbytes(), cudaMemcpyHostToDevice));
  return out;
}

torch::Tensor upload_last(const torch::Tensor &stack, torch::Device device) {
  TORCH_CHECK(stack.device().is_cpu() && stack.scalar_type() == torch::kFloat, "upload_last: expected floats on the host");
  auto out = torch::empty(stack.sizes().slice(1), torch::dtype(torch::kFloat).device(device));
  const float *source = stack[stack.size(0) - 1].data_ptr<float>();
  C10_CUDA_CHECK(cudaMemcpy(out.data_ptr<float>(), source, out.nbytes(), cudaMemcpyHostToDevice));
  return out;
}

} // namespace prefetch

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace prefetch;
Batch batch() { return {torch::randint(256, {2, 8, 8, 3}, torch::kByte), torch::zeros({2}, torch::kLong), {}, 0}; }
Source source(int n) { return [n]() mutable { return n-- > 0 ? std::optional<Batch>(batch()) : std::nullopt; }; }
PrefetchOptions options;
void next_ok() { Prefetcher p(source(3), dtl::dev(1)); while (p.next()) {} }
void next_weighted_bad() { Prefetcher p(source(3), dtl::dev(1)); p.next_weighted(); }
void entropy_ok() { Prefetcher p(source(3), dtl::dev(1)); p.label_entropy(*p.next(), 3); }
void repin_ok() { repin(batch().to(dtl::dev(1), false)); }
void repin_device_bad() { repin_device(batch(), dtl::dev(1)); }
void thumbnail_bad() { thumbnail(batch(), dtl::dev(1), 0); }
void thumbnail_async_ok() { thumbnail_async(batch(), dtl::dev(1), 0); }
void wrap_frame_bad() { std::vector<uint8_t> p(48); wrap_frame(p, 4, 4, dtl::dev(1)); }
void wrap_frame_pinned_ok() { std::vector<uint8_t> p(48); wrap_frame_pinned(p, 4, 4, dtl::dev(1)); }
void upload_mean_bad() { auto m = upload_mean(torch::ones({2, 3, 4, 4}), dtl::dev(1)); dtl::require(m.sum().item<float>() == 48, "freed memory was read"); }
void upload_last_ok() { auto m = upload_last(torch::ones({2, 3, 4, 4}), dtl::dev(1)); dtl::require(m.sum().item<float>() == 48, "last"); }
void normalize_ok() { Normalizer(options, dtl::dev(1))(dtl::gpu({2, 3, 4, 4})); }
void on_stream_bad() { Normalizer(options, dtl::dev(1)).on_stream(dtl::gpu({2, 3, 4, 4})); }
void invert_bad() { Normalizer(options, dtl::dev(1)).invert(dtl::gpu({2, 3, 4, 4})); }
void zero_copy_ok() { Normalizer(options, dtl::dev(1)).zero_copy(torch::rand({2, 3, 4, 4})); }
void normalize_all_ok() { std::vector<Normalizer> n{{options, dtl::dev(0)}, {options, dtl::dev(1)}}; normalize_all({dtl::gpu({2, 3, 4, 4}, 0), dtl::gpu({2, 3, 4, 4}, 1)}, n); }
void scale_all_bad() { std::vector<torch::Tensor> x{dtl::gpu({4}, 0), dtl::gpu({4}, 1)}; scale_all(x, 2); }
} // namespace
DT_MAIN(next_ok, next_weighted_bad, entropy_ok, repin_ok, repin_device_bad, thumbnail_bad, thumbnail_async_ok,
        wrap_frame_bad, wrap_frame_pinned_ok, upload_mean_bad, upload_last_ok, normalize_ok, on_stream_bad, invert_bad,
        zero_copy_ok, normalize_all_ok, scale_all_bad)
#endif
