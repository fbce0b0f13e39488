// The map of the scene: anisotropic Gaussians and the optimizer that refines them.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace gsmap {

struct ModelConfig {
  torch::Device device = torch::kCUDA;
  double position_lr = 1.6e-4;
  double opacity_lr = 0.05;
  double densify_threshold = 2e-4;
  int64_t max_points = 100000;
};

struct Keyframe {
  int64_t id = 0;
  torch::Tensor color; // [3, h, w]
  torch::Tensor depth; // [1, h, w]
  torch::Tensor pose;  // [4, 4], camera to world
  float fx = 10, fy = 10, cx = 4, cy = 4;
};

torch::Tensor expSO3(const torch::Tensor &omega);
torch::Tensor expSE3(const torch::Tensor &twist);
torch::Tensor ssim(const torch::Tensor &a, const torch::Tensor &b, int64_t window_size = 5);
torch::Tensor gradientMagnitude(const torch::Tensor &image);
torch::Tensor psnr(const torch::Tensor &a, const torch::Tensor &b);

class GaussianModel {
public:
  explicit GaussianModel(ModelConfig config) : config_(std::move(config)) {}

  void createFromPoints(const std::vector<float> &points, const std::vector<float> &colors);
  void setupTraining();
  void addDensificationStats(const torch::Tensor &viewspace_gradient);
  void densifyAndClone();
  void extend(const std::vector<float> &points);
  void insertDense(const torch::Tensor &points);
  void prune(const std::vector<bool> &remove);
  void resetOpacity(float value);
  torch::Tensor visible(const float (&world_to_camera)[16], float near) const;
  torch::Tensor project(const std::vector<float> &world_to_camera) const;
  int64_t exportXyz(const std::string &path) const;
  int64_t savePly(const std::string &path) const;

  int64_t size() const { return xyz_.defined() ? xyz_.size(0) : 0; }
  const torch::Tensor &xyz() const { return xyz_; }
  torch::Tensor opacity() const { return torch::sigmoid(opacity_); }
  torch::optim::Adam &optimizer() { return *optimizer_; }
  const ModelConfig &config() const { return config_; }

private:
  torch::Tensor replaceInOptimizer(size_t group, const torch::Tensor &value);
  torch::Tensor appendToOptimizer(size_t group, const torch::Tensor &extension);

  ModelConfig config_;
  torch::Tensor xyz_, color_, opacity_;
  torch::Tensor gradient_accum_, denominator_;
  std::unique_ptr<torch::optim::Adam> optimizer_;
};

} // namespace gsmap
