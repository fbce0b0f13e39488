#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace vision {

class Metric {
 public:
  virtual ~Metric() = default;
  virtual void update(const torch::Tensor& output, const torch::Tensor& target) = 0;
  virtual double value() const = 0;
  virtual void reset() { state_ = torch::zeros(shape_, torch::kDouble); }

 protected:
  explicit Metric(std::vector<int64_t> shape) : shape_(std::move(shape)) { Metric::reset(); }
  std::vector<int64_t> shape_;
  torch::Tensor state_;
};

class MeanIoU : public Metric {
 public:
  explicit MeanIoU(int64_t classes) : Metric({classes, classes}), classes_(classes) {}
  void update(const torch::Tensor& output, const torch::Tensor& target) override;
  double value() const override;

 private:
  int64_t classes_;
};

class TopK : public Metric {
 public:
  explicit TopK(int64_t k) : Metric({2}), k_(k) {}
  void update(const torch::Tensor& output, const torch::Tensor& target) override;
  double value() const override;

 private:
  int64_t k_;
};

class MeanLoss : public Metric {
 public:
  MeanLoss() : Metric({}) {}
  void update(const torch::Tensor& output, const torch::Tensor& target) override;
  double value() const override { return count_ ? state_.item<double>() / count_ : 0; }
  void reset() override;

 private:
  int64_t count_ = 0;
};

// Gaussian statistics of features for the Frechet distance.
class FeatureStatistics {
 public:
  explicit FeatureStatistics(int64_t width);
  void update(const torch::Tensor& features);
  torch::Tensor mean() const { return sum_ / count_; }
  torch::Tensor covariance() const;
  torch::Tensor whitening() const;
  double distance(const FeatureStatistics& other) const;

 private:
  int64_t width_;
  double count_ = 0;
  torch::Tensor sum_, outer_;
};

// visualize.cpp
std::vector<uint8_t> to_rgb(const torch::Tensor& image);
std::vector<uint8_t> mosaic(const torch::Tensor& images, int64_t columns);
std::vector<uint8_t> label_colours(const torch::Tensor& labels);
std::string ascii_heatmap(const torch::Tensor& logits);
std::vector<float> curve(const torch::Tensor& scores, int64_t bins);
torch::Tensor blend(const torch::Tensor& image, const torch::Tensor& labels, double opacity);

} // namespace vision
