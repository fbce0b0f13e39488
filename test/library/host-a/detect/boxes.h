#pragma once

#include <torch/torch.h>

#include <vector>

namespace detect {

// Boxes are rows (x1, y1, x2, y2) in pixels.
torch::Tensor area(const torch::Tensor &boxes);
torch::Tensor pairwiseIou(const torch::Tensor &a, const torch::Tensor &b);
torch::Tensor toCenters(const torch::Tensor &boxes);
torch::Tensor fromCenters(const torch::Tensor &centers);
torch::Tensor clipToImage(const torch::Tensor &boxes, int64_t height, int64_t width);
torch::Tensor scaleToOriginal(const torch::Tensor &boxes, float ratioX, float ratioY);

std::vector<int64_t> suppress(const torch::Tensor &boxes, const torch::Tensor &scores, float threshold);
torch::Tensor suppressPerClass(const torch::Tensor &boxes, const torch::Tensor &scores, const torch::Tensor &classes,
                               float threshold);
torch::Tensor softSuppress(const torch::Tensor &boxes, const torch::Tensor &scores, float sigma);

} // namespace detect
