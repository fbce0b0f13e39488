#include "boxes.h"

#include <algorithm>
#include <numeric>

namespace detect {

torch::Tensor area(const torch::Tensor &boxes) {
  return (boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1));
}

torch::Tensor pairwiseIou(const torch::Tensor &a, const torch::Tensor &b) {
  const auto leftTop = torch::max(a.slice(1, 0, 2).unsqueeze(1), b.slice(1, 0, 2).unsqueeze(0));
  const auto rightBottom = torch::min(a.slice(1, 2, 4).unsqueeze(1), b.slice(1, 2, 4).unsqueeze(0));
  const auto size = (rightBottom - leftTop).clamp_min(0);
  const auto shared = size.select(2, 0) * size.select(2, 1);
  return shared / (area(a).unsqueeze(1) + area(b).unsqueeze(0) - shared + 1e-7);
}

torch::Tensor toCenters(const torch::Tensor &boxes) {
  const auto size = boxes.slice(1, 2, 4) - boxes.slice(1, 0, 2);
  return torch::cat({boxes.slice(1, 0, 2) + 0.5 * size, size}, 1);
}

torch::Tensor fromCenters(const torch::Tensor &centers) {
  const auto half = 0.5 * centers.slice(1, 2, 4);
  return torch::cat({centers.slice(1, 0, 2) - half, centers.slice(1, 0, 2) + half}, 1);
}

torch::Tensor clipToImage(const torch::Tensor &boxes, int64_t height, int64_t width) {
  const auto limit = torch::tensor({width, height, width, height}, boxes.options());
  return torch::min(boxes.clamp_min(0), limit);
}

torch::Tensor scaleToOriginal(const torch::Tensor &boxes, float ratioX, float ratioY) {
  auto scaled = boxes.clone();
  scaled.select(1, 0).div_(ratioX);
  scaled.select(1, 2).div_(ratioX);
  scaled.select(1, 1).div_(ratioY);
  scaled.select(1, 3).div_(ratioY);
  return scaled;
}

// Greedy suppression on the host: the loop is sequential anyway.
std::vector<int64_t> suppress(const torch::Tensor &boxes, const torch::Tensor &scores, float threshold) {
  TORCH_CHECK(boxes.dim() == 2 && boxes.size(1) == 4, "boxes must be N x 4");
  TORCH_CHECK(scores.size(0) == boxes.size(0), "a score per box is needed");
  const auto hostBoxes = boxes.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  const auto order = std::get<1>(scores.sort(0, /*descending=*/true)).to(torch::kCPU);
  const auto box = hostBoxes.accessor<float, 2>();
  const auto rank = order.accessor<int64_t, 1>();
  std::vector<bool> removed(hostBoxes.size(0), false);
  std::vector<int64_t> keep;
  for (int64_t i = 0; i < hostBoxes.size(0); ++i) {
    const int64_t current = rank[i];
    if (removed[current])
      continue;
    keep.push_back(current);
    const float currentArea = (box[current][2] - box[current][0]) * (box[current][3] - box[current][1]);
    for (int64_t j = i + 1; j < hostBoxes.size(0); ++j) {
      const int64_t other = rank[j];
      const float width = std::min(box[current][2], box[other][2]) - std::max(box[current][0], box[other][0]);
      const float height = std::min(box[current][3], box[other][3]) - std::max(box[current][1], box[other][1]);
      const float shared = std::max(0.f, width) * std::max(0.f, height);
      const float otherArea = (box[other][2] - box[other][0]) * (box[other][3] - box[other][1]);
      if (shared > threshold * (currentArea + otherArea - shared))
        removed[other] = true;
    }
  }
  return keep;
}

torch::Tensor suppressPerClass(const torch::Tensor &boxes, const torch::Tensor &scores, const torch::Tensor &classes,
                               float threshold) {
  if (boxes.numel() == 0)
    return torch::empty({0}, torch::kLong);
  const auto offset = classes.to(boxes.scalar_type()) * (boxes.max() + 1);
  const auto keep = suppress(boxes + offset.unsqueeze(1), scores, threshold);
  return torch::tensor(keep, torch::kLong);
}

torch::Tensor softSuppress(const torch::Tensor &boxes, const torch::Tensor &scores, float sigma) {
  const auto iou = pairwiseIou(boxes, boxes).triu(1);
  const auto strongest = std::get<0>(iou.max(0));
  const auto decay = torch::exp(-(iou.pow(2) - strongest.unsqueeze(1).pow(2)) / sigma);
  return scores * std::get<0>(decay.min(0));
}

} // namespace detect
