#include "plugin.h"

#include <algorithm>
#include <cstring>

namespace segplug {

namespace {

at::Tensor make_grid(int64_t height, int64_t width) {
  const auto y = at::arange(height, at::kFloat).view({-1, 1}).expand({height, width});
  const auto x = at::arange(width, at::kFloat).view({1, -1}).expand({height, width});
  return at::stack({x, y}, -1).view({-1, 2});
}

} // namespace

const at::Tensor& AnchorCache::grid(int64_t height, int64_t width, const at::Device& device) {
  auto it = grids_.find({height, width});
  if (it == grids_.end())
    it = grids_.emplace(std::make_pair(height, width), make_grid(height, width).to(device)).first;
  return it->second;
}

const at::Tensor& AnchorCache::grid_per_device(int64_t height, int64_t width, const at::Device& device) {
  auto& entry = per_device_[{height, width, device.str()}];
  return entry.defined() ? entry : entry = make_grid(height, width).to(device);
}

at::Tensor decode_boxes(const at::Tensor& deltas, const at::Tensor& grid) {
  const auto centre = grid + deltas.slice(1, 0, 2).sigmoid(); // [[device-mixed-op]]
  const auto half = deltas.slice(1, 2, 4).exp() / 2;
  return at::cat({centre - half, centre + half}, 1);
}

at::Tensor iou(const at::Tensor& a, const at::Tensor& b) {
  const auto low = at::maximum(a.slice(1, 0, 2).unsqueeze(1), b.slice(1, 0, 2).unsqueeze(0));
  const auto high = at::minimum(a.slice(1, 2, 4).unsqueeze(1), b.slice(1, 2, 4).unsqueeze(0));
  const auto common = (high - low).clamp_min(0).prod(-1);
  auto area = [](const at::Tensor& t) { return (t.slice(1, 2, 4) - t.slice(1, 0, 2)).prod(1); };
  return common / (area(a).unsqueeze(1) + area(b).unsqueeze(0) - common + 1e-6);
}

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double overlap) {
  const auto order = scores.argsort(0, true).cpu();
  const auto overlaps = iou(boxes, boxes).gt(overlap).cpu();
  const auto hit = overlaps.accessor<bool, 2>();
  const auto* ranked = order.data_ptr<int64_t>();
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < order.numel(); ++i)
    if (std::none_of(kept.begin(), kept.end(), [&](int64_t k) { return hit[k][ranked[i]]; }))
      kept.push_back(ranked[i]);
  return at::tensor(kept, at::TensorOptions(at::kLong).device(boxes.device()));
}

at::Tensor nms_greedy(const at::Tensor& boxes, const at::Tensor& scores, double overlap) {
  const auto overlaps = iou(boxes, boxes).gt(overlap);
  const auto order = scores.argsort(0, true);
  auto alive = at::ones({boxes.size(0)}, at::kBool);
  for (int64_t i = 0; i < order.size(0); ++i) {
    const auto best = order[i].item<int64_t>();
    if (!alive[best].item<bool>())
      continue;
    alive.logical_and_(overlaps[best].logical_not().cpu());
    alive[best] = true;
  }
  return alive.nonzero().flatten();
}

at::Tensor assemble_masks(const at::Tensor& prototypes, const at::Tensor& coefficients) {
  const auto [channels, height, width] = std::make_tuple(prototypes.size(0), prototypes.size(1), prototypes.size(2));
  return coefficients.matmul(prototypes.view({channels, -1})).sigmoid().view({-1, height, width});
}

// The default argument is from the time when masks were cropped on the host.
at::Tensor crop_masks(at::Tensor masks, const at::Tensor& boxes, const at::Device& device) {
  const auto columns = at::arange(masks.size(2), at::TensorOptions(at::kFloat).device(device)).view({1, 1, -1});
  const auto left = boxes.select(1, 0).view({-1, 1, 1}), right = boxes.select(1, 2).view({-1, 1, 1});
  return masks * (columns >= left).logical_and(columns < right); // [[device-mixed-op]]
}

std::vector<uint8_t> run_length(const at::Tensor& mask) {
  const auto bits = mask.gt(0.5).to(at::kByte).flatten().to(at::kCPU);
  const auto* first = bits.data_ptr<uint8_t>();
  std::vector<uint8_t> runs;
  for (const auto* p = first; p != first + bits.numel();) {
    const auto* next = std::find_if(p, first + bits.numel(), [p](uint8_t v) { return v != *p; });
    runs.push_back(static_cast<uint8_t>(std::min<ptrdiff_t>(255, next - p)));
    p = next;
  }
  return runs;
}

at::Tensor to_tensor(const Frame& frame, const at::Device& device) {
  auto pixels = at::from_blob(const_cast<uint8_t*>(frame.pixels), {frame.height, frame.width, 3}, at::kByte);
  return pixels.to(device).permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).div(255);
}

at::Tensor Tracker::match(const at::Tensor& embeddings) const {
  return embeddings.to(gallery_.device()).matmul(gallery_.t());
}

void Tracker::add(const at::Tensor& embeddings) {
  gallery_ = at::cat({gallery_, embeddings.detach().to(gallery_.device())});
  ids_ = at::arange(gallery_.size(0));
}

void Tracker::add_raw(const at::Tensor& embeddings) {
  const auto kept = embeddings.detach();
  gallery_ = gallery_.size(0) == 0 ? kept : at::cat({gallery_, kept}, 0);
  ids_ = at::cat({ids_, at::full({kept.size(0)}, ids_.numel(), at::kLong)});
}

at::Tensor Tracker::ids_of(const at::Tensor& embeddings) const {
  const auto nearest = match(embeddings.to(gallery_.device())).argmax(1);
  return ids_.index_select(0, nearest); // [[device-mixed-op]]
}

} // namespace segplug
