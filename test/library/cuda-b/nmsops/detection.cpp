#include "detops.h"

#include <torch/library.h>

#include <cmath>

namespace detops {

AnchorGenerator::AnchorGenerator(std::vector<double> sizes, std::vector<double> ratios) {
  const auto scale = torch::tensor(sizes, torch::kFloat), ratio = torch::tensor(ratios, torch::kFloat);
  const auto h = ratio.sqrt(), w = 1 / h;
  const auto ws = (w.unsqueeze(1) * scale.unsqueeze(0)).view({-1}), hs = (h.unsqueeze(1) * scale.unsqueeze(0)).view({-1});
  cells_ = torch::stack({-ws, -hs, ws, hs}, 1) / 2;
}

torch::Tensor AnchorGenerator::grid(const torch::Tensor &features, int64_t stride) const {
  const auto options = torch::dtype(torch::kFloat).device(features.device());
  const auto x = torch::arange(features.size(-1), options) * stride, y = torch::arange(features.size(-2), options) * stride;
  const auto mesh = torch::meshgrid({y, x}, "ij");
  const auto shift_y = mesh[0].reshape({-1}), shift_x = mesh[1].reshape({-1});
  const auto shifts = torch::stack({shift_x, shift_y, shift_x, shift_y}, 1);
  return (shifts.view({-1, 1, 4}) + cells_.view({1, -1, 4})).reshape({-1, 4}); // [[device-mixed-op]]
}

torch::Tensor AnchorGenerator::centers(const torch::Tensor &features, int64_t stride) const {
  const auto options = features.options().dtype(torch::kFloat);
  const auto x = (torch::arange(features.size(-1), options) + 0.5) * stride;
  const auto y = (torch::arange(features.size(-2), options) + 0.5) * stride;
  const auto mesh = torch::meshgrid({y, x}, "ij");
  const auto points = torch::stack({mesh[1].reshape({-1}), mesh[0].reshape({-1})}, 1);
  return points.unsqueeze(1).expand({-1, per_location(), 2}) - cells_.slice(1, 0, 2).to(points).unsqueeze(0);
}

Detections Detections::select(const torch::Tensor &index) const {
  return {boxes.index_select(0, index), scores.index_select(0, index), labels.index_select(0, index)};
}

torch::Tensor batched_nms(const Detections &found, double threshold) {
  if (found.boxes.numel() == 0)
    return torch::empty({0}, torch::dtype(torch::kLong).device(found.boxes.device()));
  const auto span = found.boxes.max() + 1;
  const auto offsets = found.labels.to(found.boxes) * span;
  const auto shifted = found.boxes + offsets.unsqueeze(1);
  static const auto op = torch::Dispatcher::singleton()
                             .findSchemaOrThrow("detops::nms", "")
                             .typed<torch::Tensor(const torch::Tensor &, const torch::Tensor &, double)>();
  return op.call(shifted, found.scores, threshold);
}

torch::Tensor decode(const torch::Tensor &anchors, const torch::Tensor &deltas, const std::vector<double> &weights) {
  TORCH_CHECK(weights.size() == 4, "four weights are expected");
  const auto size = anchors.slice(1, 2, 4) - anchors.slice(1, 0, 2);
  const auto center = anchors.slice(1, 0, 2) + size / 2;
  const auto limit = torch::tensor(std::log(1000.0 / 16));
  const auto scaled = deltas / torch::tensor(weights, deltas.options());
  const auto moved = scaled.slice(1, 0, 2) * size + center;
  const auto grown = torch::min(scaled.slice(1, 2, 4), limit.to(scaled.device())).exp() * size;
  return torch::cat({moved - grown / 2, moved + grown / 2}, 1);
}

Detections top_k(const Detections &found, int64_t k) {
  const auto order = std::get<1>(found.scores.cpu().topk(std::min(k, found.scores.size(0))));
  Detections best;
  best.scores = found.scores.index_select(0, order); // [[device-mixed-op]]
  best.boxes = found.boxes.index({order});
  best.labels = found.labels.index({order});
  return best;
}

torch::Tensor paste_masks(const torch::Tensor &masks, const torch::Tensor &boxes, int64_t height, int64_t width) {
  const auto columns = boxes.split(1, 1);
  const auto device = masks.is_cuda() ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  const auto y = torch::arange(height, torch::dtype(torch::kFloat).device(device)) + 0.5;
  const auto x = torch::arange(width, torch::dtype(torch::kFloat).device(device)) + 0.5;
  const auto gy = (y.unsqueeze(0) - columns[1]) / (columns[3] - columns[1]) * 2 - 1; // [[device-mixed-op]]
  const auto gx = (x.unsqueeze(0) - columns[0]) / (columns[2] - columns[0]) * 2 - 1;
  const auto n = masks.size(0);
  const auto field = torch::stack({gx.unsqueeze(1).expand({n, height, width}), gy.unsqueeze(2).expand({n, height, width})}, 3);
  return torch::grid_sampler(masks.unsqueeze(1), field, 0, 0, false).squeeze(1);
}

Detections assign_levels(const Detections &found, int64_t first, int64_t last) {
  const auto size = found.boxes.slice(1, 2, 4) - found.boxes.slice(1, 0, 2);
  const auto level = (torch::log2(size.prod(1).sqrt() / 224 + 1e-6) + 4).floor().clamp(first, last).to(torch::kLong);
  Detections sorted = found;
  sorted.labels = level;
  const auto order = level.cpu().argsort();
  sorted.boxes = found.boxes.index({order});
  return sorted;
}

} // namespace detops

static torch::Tensor nms_cpu(const torch::Tensor &dets, const torch::Tensor &scores, double threshold) {
  const auto order = std::get<1>(scores.sort(0, true));
  const auto boxes = dets.index_select(0, order).contiguous();
  const auto rows = boxes.accessor<float, 2>();
  std::vector<int64_t> keep;
  for (int64_t i = 0; i < boxes.size(0); ++i)
    if (keep.empty() || std::abs(rows[i][0] - rows[keep.back()][0]) > threshold)
      keep.push_back(i);
  return order.index_select(0, torch::tensor(keep, torch::kLong));
}

TORCH_LIBRARY(detops, m) {
  m.def("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor");
  m.def("roi_align(Tensor input, Tensor rois, float scale, int pooled) -> Tensor");
  m.def("_roi_align_backward(Tensor grad, Tensor rois, float scale, int pooled, int batch, int height, int width) -> "
        "Tensor");
}

TORCH_LIBRARY_IMPL(detops, CPU, m) { m.impl("nms", &nms_cpu); }

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace detops;
using dtl::gpu;
Detections found() { return {gpu({6, 4}), gpu({6}), dtl::longs({6})}; }
AnchorGenerator anchors() { return AnchorGenerator({32, 64}, {.5, 1, 2}); }
// The mask is not filled by the kernel here, so the loop ends with some boxes.
void nms_ok() { nms_kernel(gpu({6, 4}), gpu({6}), .5); }
void nms_rotated_bad() { nms_rotated(gpu({6, 5}), gpu({6}), .5); }
void box_overlaps_bad() { box_overlaps(gpu({6, 4}), gpu({5, 4})); }
void roi_align_ok() { roi_align_forward(gpu({2, 3, 8, 8}), gpu({4, 5}), 1, 2); }
void roi_align_backward_bad() { roi_align_backward(gpu({4, 3, 2, 2}), gpu({4, 5}), 1, 2, 2, 8, 8); }
void grid_bad() { anchors().grid(gpu({1, 3, 4, 4}), 8); }
void centers_ok() { anchors().centers(gpu({1, 3, 4, 4}), 8); }
void batched_nms_ok() { batched_nms(found(), .5); batched_nms({torch::rand({6, 4}), torch::rand({6}), torch::zeros({6}, torch::kLong)}, .5); }
void decode_ok() { decode(gpu({6, 4}), gpu({6, 4}), {10, 10, 5, 5}); }
void select_ok() { found().select(dtl::longs({2})); }
void top_k_bad() { top_k(found(), 3); }
void paste_masks_bad() { paste_masks(gpu({6, 5, 5}), gpu({6, 4}), 8, 8); }
void assign_levels_ok() { assign_levels(found(), 2, 5); }
} // namespace
DT_MAIN(nms_ok, nms_rotated_bad, box_overlaps_bad, roi_align_ok, roi_align_backward_bad, grid_bad, centers_ok,
        batched_nms_ok, decode_ok, select_ok, top_k_bad, paste_masks_bad, assign_levels_ok)
#endif
