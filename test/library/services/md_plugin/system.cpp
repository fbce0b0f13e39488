#include "potential.h"

#include <cmath>

namespace mdplug {

HarmonicBonds::HarmonicBonds(const std::vector<int64_t> &pairs, const std::vector<float> &lengths, float k) : k_(k) {
  const auto table = torch::tensor(pairs).view({-1, 2});
  first_ = table.select(1, 0).contiguous();
  second_ = table.select(1, 1).contiguous();
  lengths_ = torch::tensor(lengths);
}

void HarmonicBonds::to(torch::Device device) {
  first_ = first_.to(device);
  second_ = second_.to(device);
  lengths_ = lengths_.to(device);
}

torch::Tensor HarmonicBonds::energy(const torch::Tensor &positions) {
  const auto delta = positions.index_select(0, first_) - positions.index_select(0, second_);
  return k_ * (delta.norm(2, 1) - lengths_).pow(2).sum();
}

LennardJones::LennardJones(const std::vector<int64_t> &types, const std::vector<float> &epsilon) : types_(types) {
  const auto root = torch::tensor(epsilon).sqrt();
  epsilon_ = root.unsqueeze(0) * root.unsqueeze(1);
}

torch::Tensor LennardJones::energy(const torch::Tensor &positions) {
  const auto types = torch::tensor(types_, positions.options().dtype(torch::kLong).requires_grad(false));
  const auto delta = positions.unsqueeze(0) - positions.unsqueeze(1);
  const auto r2 = delta.pow(2).sum(-1) + torch::eye(positions.size(0), positions.device());
  const auto r6 = r2.pow(-3);
  const auto depth = epsilon_.index({types.unsqueeze(0), types.unsqueeze(1)}); // [[device-mixed-op]]
  return (4 * depth * (r6 * r6 - r6)).triu(1).sum();
}

torch::Tensor Coulomb::energy(const torch::Tensor &positions) {
  const auto q = charges_.to(positions.device());
  const auto delta = positions.unsqueeze(0) - positions.unsqueeze(1);
  const auto r = (delta.pow(2).sum(-1) + torch::eye(positions.size(0), positions.device())).sqrt();
  return (q.unsqueeze(0) * q.unsqueeze(1) / r).triu(1).sum();
}

// Potential energy in a field that lives on the GPU of the grid.
torch::Tensor Coulomb::external(const torch::Tensor &field) const {
  const auto onGrid = field.to(torch::kCUDA);
  return (onGrid * charges_).sum(); // [[device-load-placement]]
}

System::System(int64_t atoms, torch::Device device) : atoms_(atoms), device_(device) {
  positions_ = torch::zeros({atoms, 3}, device_);
  velocities_ = torch::zeros_like(positions_);
  masses_ = torch::ones({atoms, 1}, device_);
  integrators_["verlet"] = [this](double dt) {
    const auto half = velocities_ + 0.5 * dt * evaluate().second / masses_;
    positions_ = positions_ + dt * half;
    velocities_ = half + 0.5 * dt * evaluate().second / masses_;
  };
  integrators_["brownian"] = [this](double dt) {
    const auto kick = torch::randn(positions_.sizes(), positions_.options()) * std::sqrt(2 * dt);
    positions_ = positions_ + dt * evaluate().second + kick;
  };
  integrators_["langevin"] = [this](double dt) {
    const auto damping = torch::exp(torch::tensor(-dt, torch::kFloat));
    const auto thermal = torch::randn(velocities_.sizes(), torch::kFloat) * std::sqrt(1 - std::exp(-2 * dt));
    velocities_ = damping * velocities_ + dt * evaluate().second / masses_;
    velocities_ = velocities_ + thermal; // [[device-mixed-op]]
    positions_ = positions_ + dt * velocities_;
  };
}

void System::add(const std::string &name, std::unique_ptr<Potential> potential) {
  potential->to(device_);
  potentials_[name] = std::move(potential);
}

void System::setPositions(const double *coordinates) {
  const auto host = torch::from_blob(const_cast<double *>(coordinates), {atoms_, 3}, torch::kDouble);
  positions_ = host.to(torch::TensorOptions(device_).dtype(torch::kFloat));
}

torch::Tensor System::wrapped() const {
  const auto box = torch::tensor(box_, torch::kFloat).view({3, 3});
  const auto inverse = box.inverse().to(device_);
  const auto fractional = positions_.matmul(inverse);
  return (fractional - fractional.floor()).matmul(box); // [[device-mixed-op]]
}

torch::Tensor System::imageShift(const torch::Tensor &delta) const {
  const auto box = torch::tensor(box_, torch::dtype(torch::kFloat).device(delta.device())).view({3, 3});
  auto out = delta;
  for (int axis = 2; axis >= 0; --axis)
    out = out - torch::round(out.select(1, axis) / box_[4 * axis]).unsqueeze(1) * box[axis];
  return out;
}

std::pair<double, torch::Tensor> System::evaluate() {
  auto x = positions_.detach().clone().requires_grad_();
  auto total = torch::zeros({});
  for (auto &[name, potential] : potentials_)
    total = total + potential->energy(x);
  if (potentials_.empty())
    return {0.0, torch::zeros_like(x)};
  total.backward();
  return {total.item<double>(), -x.grad()};
}

std::pair<double, torch::Tensor> System::evaluateOne(const std::string &name) {
  auto x = positions_.detach().clone().requires_grad_();
  const auto energy = potentials_.at(name)->energy(x);
  const auto gradient = torch::autograd::grad({energy}, {x})[0];
  return {energy.item<double>(), -gradient};
}

void System::step(const std::string &integrator, double dt) { integrators_.at(integrator)(dt); }

double System::temperature() const {
  return (masses_ * velocities_.pow(2)).sum().item<double>() / (3.0 * static_cast<double>(atoms_));
}

} // namespace mdplug
