#pragma once

#include <torch/torch.h>

#include <unordered_map>
#include <vector>

namespace detops {

torch::Tensor nms_kernel(const torch::Tensor &dets, const torch::Tensor &scores, double iou_threshold);
torch::Tensor nms_rotated(const torch::Tensor &dets, const torch::Tensor &scores, double iou_threshold);
torch::Tensor box_overlaps(const torch::Tensor &a, const torch::Tensor &b);
torch::Tensor roi_align_forward(const torch::Tensor &input, const torch::Tensor &rois, double scale, int64_t pooled);
torch::Tensor roi_align_backward(const torch::Tensor &grad, const torch::Tensor &rois, double scale, int64_t pooled,
                                 int64_t batch, int64_t height, int64_t width);

class AnchorGenerator {
public:
  AnchorGenerator(std::vector<double> sizes, std::vector<double> ratios);

  torch::Tensor grid(const torch::Tensor &features, int64_t stride) const;
  torch::Tensor centers(const torch::Tensor &features, int64_t stride) const;
  int64_t per_location() const { return cells_.size(0); }

private:
  torch::Tensor cells_;
};

struct Detections {
  torch::Tensor boxes, scores, labels;

  Detections select(const torch::Tensor &index) const;
};

torch::Tensor batched_nms(const Detections &found, double threshold);
torch::Tensor decode(const torch::Tensor &anchors, const torch::Tensor &deltas, const std::vector<double> &weights);
Detections top_k(const Detections &found, int64_t k);
torch::Tensor paste_masks(const torch::Tensor &masks, const torch::Tensor &boxes, int64_t height, int64_t width);
Detections assign_levels(const Detections &found, int64_t first, int64_t last);

} // namespace detops
