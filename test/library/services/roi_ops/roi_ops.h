#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace detops {

struct RoiAlignArgs {
  double spatial_scale = 1.0;
  int64_t pooled_height = 7;
  int64_t pooled_width = 7;
  int64_t sampling_ratio = 2;
  bool aligned = true;
};

// CUDA entry points.
at::Tensor roi_align_forward_cuda(const at::Tensor& input, const at::Tensor& rois, const RoiAlignArgs& args);
at::Tensor multilevel_roi_align_cuda(const at::Tensor& packed, const at::Tensor& rois, const at::Tensor& levels,
                                     at::ArrayRef<double> scales, int64_t pooled);
at::Tensor nms_cuda(const at::Tensor& dets, const at::Tensor& scores, double iou_threshold);
at::Tensor nms_rotated_cuda(const at::Tensor& dets, const at::Tensor& scores, double iou_threshold);
at::Tensor modulated_deform_im2col_cuda(const at::Tensor& input, const at::Tensor& offset, const at::Tensor& mask,
                                        int64_t kernel, int64_t stride, int64_t pad);
at::Tensor modulated_deform_col2im_cuda(const at::Tensor& columns, const at::Tensor& offset, int64_t channels);
void ps_roi_pool_launch(const at::Tensor& input, const at::Tensor& rois, at::Tensor& output, float scale);

// Differentiable RoI pooling.
at::Tensor roi_pool(const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled);

// Dispatching front ends.
at::Tensor roi_align(const at::Tensor& input, const at::Tensor& rois, const RoiAlignArgs& args);
at::Tensor ps_roi_pool(const at::Tensor& input, const at::Tensor& rois, double spatial_scale, int64_t pooled);
at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& idxs, double iou_threshold);
std::vector<int64_t> matrix_nms(const at::Tensor& masks, const at::Tensor& scores, double sigma, double threshold);
at::Tensor sigmoid_focal_loss(const at::Tensor& logits, const at::Tensor& targets, double alpha, double gamma);
at::Tensor decode_boxes(const at::Tensor& anchors, const at::Tensor& deltas, at::ArrayRef<double> weights);
std::vector<uint8_t> paste_mask(const at::Tensor& mask, const at::Tensor& box, int64_t height, int64_t width);
std::vector<float> mask_areas(const at::Tensor& masks);

class AnchorGenerator {
 public:
  AnchorGenerator(std::vector<std::string> levels, std::vector<double> sizes, std::vector<double> ratios);
  std::vector<at::Tensor> grid_anchors(const std::map<std::string, at::Tensor>& features) const;
  at::Tensor cell_anchors(const std::string& level, const at::Tensor& like) const;
  int64_t anchors_per_location(const std::string& level) const { return base_.at(level).size(0); }

 private:
  static at::Tensor make_base(double size, const std::vector<double>& ratios);
  static at::Tensor shifts(const at::Tensor& feature, int64_t stride);
  std::map<std::string, at::Tensor> base_;
  std::map<std::string, int64_t> strides_;
};

} // namespace detops
