#include "loader.h"

namespace vision {

Sample decode(const std::vector<uint8_t>& rgb, int64_t height, int64_t width) {
  TORCH_CHECK(static_cast<int64_t>(rgb.size()) == 3 * height * width);
  auto bytes = torch::from_blob(const_cast<uint8_t*>(rgb.data()), {height, width, 3}, torch::kByte);
  return {bytes.permute({2, 0, 1}).to(torch::kFloat).div(255), torch::zeros({1, 4}), 0};
}

Batch collate(const std::vector<Sample>& samples) {
  std::vector<torch::Tensor> images, boxes;
  std::vector<int64_t> labels, counts;
  for (const auto& s : samples) {
    images.push_back(s.image);
    boxes.push_back(s.boxes);
    labels.push_back(s.label);
    counts.push_back(s.boxes.size(0));
  }
  return {torch::stack(images), torch::tensor(labels), torch::cat(boxes), torch::tensor(counts)};
}

BatchAugment::BatchAugment() {
  steps_["flip"] = [](const torch::Tensor& images) {
    const auto chosen = torch::rand({images.size(0), 1, 1, 1}).lt(0.5).to(images.device());
    return torch::where(chosen, images.flip({3}), images);
  };
  steps_["brightness"] = [](const torch::Tensor& images) {
    const auto factor = torch::empty({}).uniform_(0.8, 1.2);
    return (images * factor).clamp(0, 1);
  };
  steps_["grayscale"] = [](const torch::Tensor& images) {
    const auto device = torch::kCUDA;
    const auto luma = torch::tensor({0.299f, 0.587f, 0.114f}).view({1, 3, 1, 1});
    return (images.to(device) * luma).sum(1, true).expand_as(images); // [[device-mixed-op]]
  };
  steps_["normalise"] = [](const torch::Tensor& images) {
    const auto mean = torch::tensor({0.485, 0.456, 0.406}, images.options()).view({1, 3, 1, 1});
    const auto deviation = torch::tensor({0.229, 0.224, 0.225}).to(images).view({1, 3, 1, 1});
    return (images - mean) / deviation;
  };
}

torch::Tensor BatchAugment::apply(const std::string& name, const torch::Tensor& images) const {
  const auto found = steps_.find(name);
  TORCH_CHECK(found != steps_.end(), "no augmentation called ", name);
  return found->second(images);
}

torch::Tensor BatchAugment::apply_all(const std::vector<std::string>& names, torch::Tensor images) const {
  for (const auto& name : names)
    images = apply(name, images);
  return images;
}

std::pair<torch::Tensor, torch::Tensor> BatchAugment::mixup(const torch::Tensor& images, const torch::Tensor& targets) {
  const auto order = torch::randperm(images.size(0));
  const auto share = torch::rand({images.size(0)}, images.options());
  const auto wide = share.view({-1, 1, 1, 1});
  return {wide * images + (1 - wide) * images.index({order}),
          share.unsqueeze(1) * targets + (1 - share).unsqueeze(1) * targets.index({order})};
}

Prefetcher::Prefetcher(std::function<bool(Batch&)> source, size_t depth, bool pin)
    : source_(std::move(source)), depth_(depth), pin_(pin), thread_([this] { work(); }) {}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::work() {
  for (;;) {
    Batch batch;
    const bool more = source_(batch);
    if (more && pin_)
      batch.images = batch.images.pin_memory();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || ready_.size() < depth_; });
    if (more)
      ready_.push(std::move(batch));
    ended_ = !more;
    changed_.notify_all();
    if (stop_ || ended_)
      return;
  }
}

bool Prefetcher::next(Batch& out) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !ready_.empty(); });
  if (ready_.empty())
    return false;
  out = std::move(ready_.front());
  ready_.pop();
  changed_.notify_all();
  out.images = out.images.to(torch::kCUDA, /*non_blocking=*/true);
  out.labels = out.labels.to(torch::kCUDA, /*non_blocking=*/true);
  return true;
}

void Prefetcher::upload(Batch& batch) {
  batch.images = batch.images.cuda();
  for (auto& part : {batch.labels, batch.boxes})
    part.cuda(); // [[device-discarded-move]]
}

Batch Prefetcher::upload_pinned(const Batch& batch) {
  Batch out = batch;
  for (auto* part : {&out.images, &out.labels, &out.boxes}) {
    if (!part->is_cuda())
      *part = part->pin_memory();
    *part = part->cuda();
  }
  return out;
}

Batch Prefetcher::recycle(const Batch& batch) {
  Batch out;
  out.images = torch::zeros_like(batch.images.to(torch::kCUDA)).pin_memory(); // [[device-host-access]]
  out.labels = torch::zeros_like(batch.labels.cpu()).pin_memory();
  return out;
}

std::vector<torch::Tensor> boxes_of_images(const Batch& batch) {
  const auto boxes = batch.boxes.to(torch::kCUDA);
  const auto counts = batch.counts.to(boxes.device());
  TORCH_CHECK(counts.sum().item<int64_t>() == boxes.size(0));
  return boxes.split_with_sizes(at::IntArrayRef(counts.data_ptr<int64_t>(), counts.numel())); // [[device-host-access]]
}

std::vector<torch::Tensor> crops(const Batch& batch) {
  const auto counts = batch.counts.cpu();
  const at::IntArrayRef sizes(counts.data_ptr<int64_t>(), counts.numel());
  std::vector<torch::Tensor> out;
  const auto parts = batch.boxes.to(batch.images.device()).split_with_sizes(sizes);
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto corners = parts[i].cpu().to(torch::kLong);
    const auto at = corners.accessor<int64_t, 2>();
    for (int64_t k = 0; k < at.size(0); ++k)
      out.push_back(batch.images[i].slice(1, at[k][1], at[k][3]).slice(2, at[k][0], at[k][2]));
  }
  return out;
}

} // namespace vision
