#include "batchlib.h"

#include <algorithm>

namespace batchlib {

Normalize::Normalize(std::string field, std::vector<float> mean, std::vector<float> deviation)
    : field_(std::move(field)),
      mean_(torch::tensor(mean).view({1, -1, 1, 1})),
      deviation_(torch::tensor(deviation).view({1, -1, 1, 1})) {}

void Normalize::set_device(const torch::Device& device) {
  mean_ = mean_.to(device);
  deviation_ = deviation_.to(device);
}

Batch Normalize::operator()(Batch batch) {
  auto& images = batch[field_];
  images = (images - mean_) / deviation_;
  return batch;
}

Tensor Normalize::undo(const Tensor& images) const {
  return images.to(mean_.device()) * deviation_ + mean_;
}

Tensor ColorJitter::grayscale(const Tensor& images) const {
  const auto weights = luma_.to(images.device()).view({1, 3, 1, 1});
  return (images * weights).sum(1, true);
}

Batch ColorJitter::operator()(Batch batch) {
  auto& images = batch["image"];
  const auto factor = torch::rand({images.size(0), 1, 1, 1}, images.options()) * strength_ + 1;
  images = images * factor + torch::rand({}) * strength_;
  return batch;
}

Batch MixUp::operator()(Batch batch) {
  auto& images = batch["image"];
  const auto order = torch::randperm(images.size(0));
  const auto lambda = lambdas(images.size(0)).to(images.device());
  const auto other = images.index({order});
  const auto wide = lambda.view({-1, 1, 1, 1});
  images = images * wide + other * (1 - wide);
  const auto labels = torch::one_hot(batch["label"], classes_).to(torch::kFloat);
  batch.tensors["soft"] = labels * lambda.unsqueeze(1) + labels.index({order}) * (1 - lambda).unsqueeze(1);
  return batch;
}

Batch RandomErase::operator()(Batch batch) {
  auto& images = batch["image"];
  const auto erased = torch::rand({images.size(0)}) < chance_;
  const auto top = torch::randint(images.size(2) - edge_ + 1, {images.size(0)}, torch::kLong);
  const auto row = torch::arange(images.size(2)).unsqueeze(0);
  const auto band = (row >= top.unsqueeze(1)) & (row < top.unsqueeze(1) + edge_);
  const auto mask = (band & erased.unsqueeze(1)).unsqueeze(1).unsqueeze(3);
  images = images.masked_fill(mask, 0); // [[device-mixed-op]]
  return batch;
}

// Boxes are kept in pixels of the image that they were drawn on.
Tensor rescale_boxes(const Batch& batch, int64_t width, int64_t height) {
  const auto& boxes = batch.at("boxes");
  const auto scale = torch::tensor({width, height, width, height}, torch::kFloat);
  const auto size = batch.at("size").to(torch::kFloat);
  return boxes / torch::cat({size, size}, 1) * scale.to(boxes.device());
}

Tensor flip_boxes(const Batch& batch) {
  const auto& boxes = batch.at("boxes");
  const auto width = batch.at("size").select(1, 0).to(torch::kFloat).unsqueeze(1);
  const auto order = torch::tensor({2, 1, 0, 3});
  const auto swapped = boxes.index_select(1, order.to(boxes.device()));
  const auto sign = torch::tensor({-1.f, 1.f, -1.f, 1.f}, boxes.options());
  return swapped * sign + width * torch::tensor({1.f, 0.f, 1.f, 0.f}, boxes.options());
}

Batch augment_on_gpu(const Batch& batch, RandomErase& erase, int gpu) {
  auto moved = batch.to(torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(gpu)));
  return erase(std::move(moved));
}

Batch augment_on_host(Batch batch, RandomErase& erase) { return erase(std::move(batch)); }

} // namespace batchlib
