#pragma once

#include "boxes.h"

#include <map>
#include <memory>
#include <string>

namespace detect {

struct Detection {
  float box[4];
  float score;
  int64_t label;
};

struct Targets {
  torch::Tensor boxes;  // N x 4
  torch::Tensor labels; // N
};

struct DetectorOptions {
  int64_t classes = 3;
  std::vector<int64_t> strides = {8, 16};
  std::vector<float> scales = {1.0f, 2.0f};
  float scoreThreshold = 0.05f;
  float nmsThreshold = 0.5f;
  torch::Device device = torch::kCPU;
};

// Anchors of a level: a grid for every stride, kept for the size that was last seen.
class AnchorGrid {
public:
  AnchorGrid(std::vector<int64_t> strides, std::vector<float> scales, torch::Device device)
      : strides_(std::move(strides)), scales_(std::move(scales)), device_(device) {}
  torch::Tensor level(size_t index, int64_t height, int64_t width);
  torch::Tensor shifted(size_t index, int64_t height, int64_t width) const;
  torch::Tensor all(const std::vector<std::pair<int64_t, int64_t>> &sizes);

private:
  torch::Tensor base(size_t index) const;

  std::vector<int64_t> strides_;
  std::vector<float> scales_;
  torch::Device device_;
  std::map<std::tuple<size_t, int64_t, int64_t>, torch::Tensor> cache_;
};

class Detector {
public:
  explicit Detector(DetectorOptions options);

  torch::Tensor preprocess(const torch::Tensor &image) const;
  torch::Tensor decode(const torch::Tensor &deltas, const torch::Tensor &anchors) const;
  torch::Tensor encode(const torch::Tensor &boxes, const torch::Tensor &anchors) const;
  std::vector<Detection> detect(const torch::Tensor &image);
  std::vector<Detection> collect(const torch::Tensor &boxes, const torch::Tensor &scores) const;
  torch::Tensor assign(const torch::Tensor &anchors, const Targets &targets) const;
  torch::Tensor classLoss(const torch::Tensor &features, const torch::Tensor &assigned);
  torch::Tensor boxLoss(const torch::Tensor &features, const Targets &targets);
  torch::Tensor objectness(const torch::Tensor &image);
  std::vector<int64_t> histogram(const torch::Tensor &labels) const;

  AnchorGrid &anchors() { return anchors_; }
  torch::Tensor features(const torch::Tensor &image) { return backbone_->forward(preprocess(image)); }

private:
  DetectorOptions options_;
  AnchorGrid anchors_;
  torch::nn::Conv2d backbone_{nullptr};
  torch::nn::Linear classHead_{nullptr}, boxHead_{nullptr};
  torch::Tensor pixelMean_, pixelScale_;
  torch::Tensor variances_;
  torch::Tensor classPrior_;
};

} // namespace detect
