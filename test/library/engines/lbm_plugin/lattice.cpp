#include "lattice.h"

namespace lbm {

Lattice::Lattice(int nx, int ny, torch::Device device) : nx_(nx), ny_(ny), device_(device) {
  f_ = torch::full({kQ, ny, nx}, 1.f / kQ, device);
  next_ = torch::empty_like(f_);
  walls_ = torch::zeros({ny, nx}, torch::dtype(torch::kUInt8).device(device));
  force_ = torch::zeros({ny, nx}, device);
  ex_ = torch::tensor({0.f, 1.f, 0.f, -1.f, 0.f, 1.f, -1.f, -1.f, 1.f}).to(device);
  ey_ = torch::tensor({0.f, 0.f, 1.f, 0.f, -1.f, 1.f, 1.f, -1.f, -1.f}).to(device);
}

void Lattice::set_walls(const torch::Tensor& walls) {
  walls_.copy_(walls);
  f_.masked_fill_(walls_.to(torch::kBool).unsqueeze(0), 0);
}

void Lattice::set_force(const float* force) {
  force_ = torch::from_blob(const_cast<float*>(force), {ny_, nx_}).to(device_);
}

void Lattice::set_inflow(const float* profile, int count) {
  inflow_ = torch::empty({count});
  std::copy(profile, profile + count, inflow_.data_ptr<float>());
}

void Lattice::step(int n) {
  for (int i = 0; i < n; ++i) {
    stream_step(f_, next_, walls_);
    std::swap(f_, next_);
    collide_bgk(f_, omega_);
  }
}

void Lattice::step_driven(int n) {
  for (int i = 0; i < n; ++i) {
    stream_step(f_, next_, walls_);
    std::swap(f_, next_);
    collide_forced(f_, omega_, force_);
    if (inflow_.defined())
      fill_inflow(f_, inflow_);
  }
}

void Lattice::migrate(torch::Device device) {
  f_ = f_.to(device);
  next_ = torch::empty_like(f_);
  walls_ = walls_.to(device);
  ex_ = ex_.to(device);
  ey_ = ey_.to(device);
  if (tracer_.defined())
    tracer_ = tracer_.to(device);
  force_.to(device); // [[device-discarded-move]]
  device_ = device;
}

torch::Tensor Lattice::velocity() const {
  const auto rho = density().clamp_min(1e-6);
  const auto u = torch::tensordot(ex_, f_, {0}, {0}) / rho;
  const auto v = torch::tensordot(ey_, f_, {0}, {0}) / rho;
  return torch::stack({u, v});
}

void Lattice::add_tracer(const float* xy, int count) {
  const auto fresh = torch::from_blob(const_cast<float*>(xy), {count, 2}).clone();
  if (!tracer_.defined())
    tracer_ = fresh.to(device_);
  else
    tracer_ = torch::cat({tracer_, fresh}); // [[device-mixed-op]]
}

void Lattice::advect() {
  if (!tracer_.defined())
    return;
  const auto cell = tracer_.floor().to(torch::kLong);
  const auto u = velocity().index({torch::indexing::Slice(), cell.select(1, 1), cell.select(1, 0)});
  const auto limit = torch::tensor({nx_ - 1, ny_ - 1}, tracer_.options());
  tracer_ = torch::minimum((tracer_ + u.t()).clamp_min(0), limit);
}

void Lattice::collide_entropic() {
  const auto alpha = entropic_alpha(f_, omega_);
  f_ = f_ * (1 - alpha * 1e-3);
}

float Lattice::probe(int x, int y) const {
  const auto rho = density();
  const auto* row = rho.data_ptr<float>() + y * rho.stride(0);
  return row[x]; // [[device-host-access]]
}

float Lattice::drag() const { return momentum_exchange(f_, walls_).sum().item<float>(); }

} // namespace lbm
