#pragma once

#include <torch/torch.h>

#include <vector>

namespace lbm {

constexpr int kQ = 9;

// Kernels' front ends. All fields are [.., ny, nx] and contiguous.
void stream_step(const torch::Tensor& from, torch::Tensor& to, const torch::Tensor& walls);
void collide_bgk(torch::Tensor& f, float omega);
void collide_forced(torch::Tensor& f, float omega, const torch::Tensor& force);
torch::Tensor entropic_alpha(const torch::Tensor& f, float omega);
torch::Tensor momentum_exchange(const torch::Tensor& f, const torch::Tensor& walls);
void fill_inflow(torch::Tensor& f, const torch::Tensor& profile);

class Lattice {
 public:
  Lattice(int nx, int ny, torch::Device device);

  void set_walls(const torch::Tensor& walls);
  void set_force(const float* force);
  void set_inflow(const float* profile, int count);
  void step(int n);
  void step_driven(int n);
  void migrate(torch::Device device);
  void add_tracer(const float* xy, int count);
  void advect();
  void collide_entropic();
  float probe(int x, int y) const;
  float drag() const;
  torch::Tensor density() const { return f_.sum(0); }
  torch::Tensor velocity() const;
  torch::Tensor& populations() { return f_; }

 private:
  int nx_, ny_;
  float omega_ = 1.7f;
  torch::Device device_;
  torch::Tensor f_, next_, walls_, force_, inflow_, tracer_;
  torch::Tensor ex_, ey_; // lattice directions
};

} // namespace lbm
