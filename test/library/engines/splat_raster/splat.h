#pragma once

#include <torch/torch.h>

#include <string>
#include <tuple>
#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK((x).is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) \
  CHECK_CUDA(x);       \
  CHECK_CONTIGUOUS(x)

namespace splat {

constexpr int kTile = 16;

struct Pinhole {
  float fx = 500, fy = 500, cx = 32, cy = 32;
  int width = 64, height = 64;
  int tiles() const { return ((width + kTile - 1) / kTile) * ((height + kTile - 1) / kTile); }
};

// CUDA side.
std::tuple<torch::Tensor, torch::Tensor> project(const torch::Tensor& means, const torch::Tensor& view, const Pinhole& cam);
torch::Tensor covariance_2d(const torch::Tensor& scales, const torch::Tensor& quats);
torch::Tensor tile_ranges(const torch::Tensor& sorted_keys, const Pinhole& cam);
torch::Tensor intersect_counts(const torch::Tensor& xys, const torch::Tensor& radii);
torch::Tensor shade(const torch::Tensor& dirs, const torch::Tensor& coeffs);
torch::Tensor rasterize(const torch::Tensor& xys, const torch::Tensor& colors, const torch::Tensor& opacity,
                        const Pinhole& cam, const c10::optional<torch::Tensor>& background);
torch::Tensor rasterize_features(const torch::Tensor& xys, const torch::Tensor& features, const Pinhole& cam);
torch::Tensor rasterize_depth(const torch::Tensor& xys, const torch::Tensor& depths, const Pinhole& cam);
torch::Tensor alpha_composite(const torch::Tensor& colors, const torch::Tensor& alphas);
std::vector<torch::Tensor> sort_by_depth(const torch::Tensor& depths, const torch::Tensor& ids);

class GaussianCloud {
 public:
  GaussianCloud(int64_t count, torch::Device device);

  void to(torch::Device device);
  void add_view_stats(const torch::Tensor& grads, const torch::Tensor& visible);
  torch::Tensor render(const torch::Tensor& view, const Pinhole& cam) const;
  void prune(float min_opacity);
  void split(float threshold);
  void keep_only(const std::vector<int64_t>& rows);
  std::vector<char> serialize() const;
  void restore(const std::vector<char>& bytes, int64_t count);
  std::vector<float> bounds() const;
  float depth_at(const torch::Tensor& view, const Pinhole& cam, int64_t id) const;
  int64_t size() const { return means_.size(0); }
  torch::Tensor opacity() const { return torch::sigmoid(opacity_logit_); }

 private:
  torch::Tensor means_, log_scales_, quats_, opacity_logit_, sh_;
  torch::Tensor grad_accum_, view_count_;
};

// Row-major world-to-camera matrix on the host.
torch::Tensor look_at(const std::vector<float>& eye, const std::vector<float>& target);
float psnr(const torch::Tensor& rendered, const torch::Tensor& truth);

} // namespace splat
