#include "roi_ops.h"

#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cmath>

namespace detops {

at::Tensor roi_align(const at::Tensor& input, const at::Tensor& rois, const RoiAlignArgs& args) {
  if (input.is_cuda())
    return roi_align_forward_cuda(input, rois, args);
  return at::adaptive_avg_pool2d(input, {args.pooled_height, args.pooled_width})
      .index_select(0, rois.select(1, 0).to(at::kLong));
}

at::Tensor ps_roi_pool(const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled) {
  TORCH_CHECK(input.is_cuda(), "ps_roi_pool has no CPU version");
  const c10::DeviceGuard guard(input.device());
  auto output = at::zeros({rois.size(0), input.size(1) / (pooled * pooled), pooled, pooled}, input.options());
  ps_roi_pool_launch(input.contiguous(), rois.contiguous(), output, static_cast<float>(spatial_scale));
  return output;
}

at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& idxs,
                       double iou_threshold) {
  const auto max_coordinate = boxes.max().cpu();
  const auto offsets = idxs.to(boxes.scalar_type()) * (max_coordinate + 1);
  return nms_cuda(boxes + offsets.unsqueeze(1), scores, iou_threshold);
}

std::vector<int64_t> matrix_nms(const at::Tensor& masks, const at::Tensor& scores, double sigma, double threshold) {
  TORCH_CHECK(masks.is_cuda(), "matrix_nms expects the masks of the mask head");
  const auto flat = masks.flatten(1).to(at::kFloat);
  const auto inter = flat.mm(flat.t());
  const auto area = flat.sum(1);
  const auto iou = (inter / (area.unsqueeze(0) + area.unsqueeze(1) - inter)).triu(1);
  const auto compensate = std::get<0>(iou.max(0)).unsqueeze(1);
  const auto decay = std::get<0>((at::exp(-sigma * iou.pow(2)) / at::exp(-sigma * compensate.pow(2))).min(0));
  const auto passed = (scores * decay).gt(threshold);
  const auto flags = passed.accessor<bool, 1>();
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < passed.size(0); ++i)
    if (flags[i]) // [[device-host-access]]
      kept.push_back(i);
  return kept;
}

at::Tensor sigmoid_focal_loss(const at::Tensor& logits, const at::Tensor& targets, double alpha, double gamma) {
  const auto balance = at::scalar_tensor(alpha);
  const auto p = logits.sigmoid();
  const auto ce = at::binary_cross_entropy_with_logits(logits, targets, {}, {}, at::Reduction::None);
  const auto p_t = p * targets + (1 - p) * (1 - targets);
  const auto weight = targets * balance + (1 - targets) * (1 - balance);
  return (weight * ce * (1 - p_t).pow(gamma)).sum();
}

at::Tensor decode_boxes(const at::Tensor& anchors, const at::Tensor& deltas, at::ArrayRef<double> weights) {
  const auto w = at::tensor(weights, anchors.options());
  const auto d = deltas / w;
  const auto size = anchors.slice(1, 2, 4) - anchors.slice(1, 0, 2);
  const auto centre = anchors.slice(1, 0, 2) + 0.5 * size + d.slice(1, 0, 2) * size;
  const auto half = 0.5 * size * d.slice(1, 2, 4).clamp_max(std::log(1000. / 16)).exp();
  return at::cat({centre - half, centre + half}, 1);
}

std::vector<uint8_t> paste_mask(const at::Tensor& mask, const at::Tensor& box, int64_t height, int64_t width) {
  const auto corners = box.cpu();
  const float* xyxy = corners.data_ptr<float>();
  const float* logits = mask.to(at::kCPU).data_ptr<float>(); // [[device-dangling-data]]
  const int64_t side = mask.size(-1);
  std::vector<uint8_t> canvas(height * width);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const float u = (x + 0.5f - xyxy[0]) / (xyxy[2] - xyxy[0]), v = (y + 0.5f - xyxy[1]) / (xyxy[3] - xyxy[1]);
      if (u < 0 || u >= 1 || v < 0 || v >= 1)
        continue;
      canvas[y * width + x] = logits[static_cast<int64_t>(v * side) * side + static_cast<int64_t>(u * side)] > 0;
    }
  return canvas;
}

std::vector<float> mask_areas(const at::Tensor& masks) {
  auto areas = masks.flatten(1).sum(1, false, at::kFloat);
  if (areas.is_cuda())
    areas = areas.cpu();
  const float* values = areas.data_ptr<float>();
  return {values, values + areas.numel()};
}

AnchorGenerator::AnchorGenerator(std::vector<std::string> levels, std::vector<double> sizes,
                                 std::vector<double> ratios) {
  int64_t stride = 4;
  for (size_t i = 0; i < levels.size(); ++i, stride *= 2) {
    base_[levels[i]] = make_base(sizes.at(i), ratios);
    strides_[levels[i]] = stride;
  }
}

at::Tensor AnchorGenerator::make_base(double size, const std::vector<double>& ratios) {
  const auto h_ratios = at::sqrt(at::tensor(ratios, at::kFloat));
  const auto ws = size / h_ratios, hs = size * h_ratios;
  return at::stack({-ws, -hs, ws, hs}, 1) / 2;
}

at::Tensor AnchorGenerator::shifts(const at::Tensor& feature, int64_t stride) {
  const auto options = at::device(feature.device()).dtype(at::kFloat);
  const auto ys = at::arange(0, feature.size(-2) * stride, stride, options);
  const auto xs = at::arange(0, feature.size(-1) * stride, stride, options);
  const auto y = ys.view({-1, 1}).expand({ys.size(0), xs.size(0)}).reshape(-1);
  const auto x = xs.view({1, -1}).expand({ys.size(0), xs.size(0)}).reshape(-1);
  return at::stack({x, y, x, y}, 1);
}

std::vector<at::Tensor> AnchorGenerator::grid_anchors(const std::map<std::string, at::Tensor>& features) const {
  std::vector<at::Tensor> anchors;
  for (const auto& [level, feature] : features) {
    const auto offsets = shifts(feature, strides_.at(level));
    anchors.push_back((offsets.view({-1, 1, 4}) + base_.at(level).view({1, -1, 4})).reshape({-1, 4})); // [[device-mixed-op]]
  }
  return anchors;
}

at::Tensor AnchorGenerator::cell_anchors(const std::string& level, const at::Tensor& like) const {
  const auto base = base_.at(level).to(like.device());
  return (base + like.new_zeros({base.size(0), 4})).clamp_min(like.min());
}

} // namespace detops

TORCH_LIBRARY(detops, m) {
  m.def("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor");
  m.def("nms_rotated(Tensor dets, Tensor scores, float iou_threshold) -> Tensor");
  m.def("roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled) -> Tensor", &detops::roi_pool);
}

TORCH_LIBRARY_IMPL(detops, CUDA, m) {
  m.impl("nms", &detops::nms_cuda);
  m.impl("nms_rotated", &detops::nms_rotated_cuda);
}

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace detops;

static void multilevel_bad() {
  multilevel_roi_align_cuda(dtl::gpu({4, 8}, 0), dtl::gpu({3, 5}, 0), dtl::longs({3}, 0), {0.25, 0.125}, 7);
}
static void rotated_bad() { nms_rotated_cuda(dtl::gpu({6, 5}), dtl::gpu({6}), 0.5); }
static void im2col_bad() {
  modulated_deform_im2col_cuda(dtl::gpu({1, 2, 8, 8}), dtl::gpu({18, 64}), dtl::gpu({9, 64}), 3, 1, 1);
}
static void matrix_bad() { matrix_nms(dtl::gpu({3, 4, 4}), dtl::gpu({3}), 2, 0.1); }
static void paste_bad() {
  auto box = torch::tensor({0.f, 0.f, 8.f, 8.f}).to(dtl::dev(1));
  auto canvas = paste_mask(dtl::gpu({28, 28}) + 1, box, 8, 8);
  dtl::require(std::count(canvas.begin(), canvas.end(), 1) == 64, "mask");
}
static void anchors_bad() { AnchorGenerator({"p2"}, {32}, {0.5, 1, 2}).grid_anchors({{"p2", dtl::gpu({1, 4, 2, 2})}}); }
static void anchors_ok() {
  AnchorGenerator({"p2"}, {32}, {0.5, 1, 2}).cell_anchors("p2", dtl::gpu({2}));
}
static void align_ok() {
  roi_align(dtl::gpu({1, 4, 8, 8}), dtl::gpu({3, 5}), {});
  roi_align(torch::rand({1, 4, 8, 8}), torch::zeros({3, 5}), {});
}
static void pool_ok() {
  auto input = dtl::gpu({1, 4, 8, 8}).requires_grad_();
  roi_pool(input, dtl::gpu({3, 5}), 0.5, 7).sum().backward();
}
static void ps_ok() { ps_roi_pool(dtl::gpu({1, 49, 8, 8}), dtl::gpu({3, 5}), 0.5, 7); }
static void nms_ok() { batched_nms(dtl::gpu({6, 4}), dtl::gpu({6}), dtl::longs({6}), 0.5); }
static void col2im_ok() { modulated_deform_col2im_cuda(dtl::gpu({18, 64}), dtl::gpu({18, 64}), 2); }
static void focal_ok() { sigmoid_focal_loss(dtl::gpu({4, 3}), dtl::gpu({4, 3}), 0.25, 2); }
static void decode_ok() { decode_boxes(dtl::gpu({4, 4}), dtl::gpu({4, 4}), {10., 10., 5., 5.}); }
static void areas_ok() { mask_areas(dtl::gpu({2, 4, 4})); }
DT_MAIN(multilevel_bad, rotated_bad, im2col_bad, matrix_bad, paste_bad, anchors_bad, anchors_ok, align_ok, pool_ok,
        ps_ok, nms_ok, col2im_ok, focal_ok, decode_ok, areas_ok)
#endif
