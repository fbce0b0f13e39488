#pragma once

#include <torch/torch.h>

#include <tuple>
#include <unordered_map>

namespace raymarch {

struct GridSpec {
  int cascades = 1;
  int resolution = 16;
  float bound = 1.f;
  int64_t cells() const { return static_cast<int64_t>(resolution) * resolution * resolution; }
};

std::tuple<torch::Tensor, torch::Tensor> near_far_from_aabb(const torch::Tensor &rays_o, const torch::Tensor &rays_d,
                                                            const torch::Tensor &aabb, double min_near);
torch::Tensor packbits(const torch::Tensor &grid, double threshold);
std::tuple<torch::Tensor, torch::Tensor> march_rays_train(const torch::Tensor &rays_o, const torch::Tensor &rays_d,
                                                          const torch::Tensor &bitfield, int64_t max_steps);
int64_t march_rays(const torch::Tensor &rays_o, const torch::Tensor &rays_d, const torch::Tensor &bitfield,
                   int64_t max_steps, torch::Tensor &out);
int64_t compact_rays(const torch::Tensor &alive, torch::Tensor &out);

/// Sums colours along the rays.
struct CompositeRays : torch::autograd::Function<CompositeRays> {
  static torch::Tensor forward(torch::autograd::AutogradContext *ctx, torch::Tensor sigmas, torch::Tensor rgbs,
                               torch::Tensor rays);
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *ctx,
                                                 torch::autograd::variable_list grads);
};

struct SphericalHarmonics : torch::autograd::Function<SphericalHarmonics> {
  static torch::Tensor forward(torch::autograd::AutogradContext *ctx, torch::Tensor directions, int64_t degree);
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *ctx,
                                                 torch::autograd::variable_list grads);
};

/// Scratch memory of each device, grown as needed.
class Workspace {
public:
  static Workspace &instance();
  torch::Tensor get(torch::Device device, int64_t bytes);

private:
  std::unordered_map<int, torch::Tensor> buffers_;
};

class DensityGrid {
public:
  DensityGrid(GridSpec spec, torch::Device device);

  void update(const torch::Tensor &densities, double decay);
  void decay_border();
  double occupancy() const;
  double mean_density() const;
  std::vector<int64_t> occupied_cells(int64_t limit) const;
  const torch::Tensor &bitfield() const { return bitfield_; }
  torch::Tensor sample_cells(int64_t count) const;
  torch::Tensor world_centers(int64_t count) const;

private:
  GridSpec spec_;
  torch::Device device_;
  torch::Tensor grid_, bitfield_, offsets_;
};

torch::Tensor background_blend(const torch::Tensor &image, const torch::Tensor &weights);
torch::Tensor to_srgb(const torch::Tensor &image);

} // namespace raymarch
