#include "potential.h"

#include <cmath>
#include <fstream>

namespace md {

void Potential::initialize() {
  TORCH_CHECK(std::ifstream(info_.file).good(), "no such model: ", info_.file);
  module_ = torch::jit::load(info_.file);
  if (torch::cuda::is_available() && info_.gpu >= 0) {
    device_ = std::make_unique<torch::Device>(torch::kCUDA, static_cast<c10::DeviceIndex>(info_.gpu));
    module_.to(torch::kCUDA);
  } else {
    device_ = std::make_unique<torch::Device>(torch::kCPU);
    module_.to(torch::kCPU);
  }
  module_.eval();
  self_ = torch::eye(info_.atoms, torch::TensorOptions().dtype(torch::kBool).device(*device_));
}

void Potential::setTypes(const int *types) {
  std::vector<int64_t> values(types, types + info_.atoms);
  types_ = torch::tensor(values, torch::kLong).to(*device_);
}

void Potential::setCharges(const double *charges) {
  charges_ = torch::empty({info_.atoms}, torch::kFloat64);
  std::copy(charges, charges + info_.atoms, charges_.data_ptr<double>());
  charges_ = charges_.to(torch::kFloat32);
}

void Potential::setCell(const double *cell) {
  cell_ = torch::tensor({cell[0], cell[1], cell[2]}, torch::kFloat64).to(*device_, torch::kFloat32);
}

void Potential::setRestraint(const double *reference, double stiffness) {
  const auto host = torch::from_blob(const_cast<double *>(reference), {info_.atoms, 3}, torch::kFloat64);
  reference_ = host.to(torch::kFloat32);
  stiffness_ = stiffness;
}

torch::Tensor Potential::upload(const double *positions) const {
  const auto host = torch::from_blob(const_cast<double *>(positions), {info_.atoms, 3}, torch::kFloat64);
  return host.to(*device_, torch::kFloat32);
}

torch::Tensor Potential::displacement(const torch::Tensor &positions) const {
  auto delta = positions.unsqueeze(0) - positions.unsqueeze(1);
  if (cell_.defined())
    delta = delta - torch::round(delta / cell_) * cell_;
  return delta;
}

double Potential::energy(const double *positions) {
  torch::NoGradGuard noGrad;
  const auto output = module_.forward({upload(positions)}); // [[device-mixed-op]]
  return output.toTensor().sum().item<double>();
}

torch::Tensor Potential::forces(const double *positions) {
  const auto x = upload(positions).requires_grad_(true);
  const auto distance = (displacement(x).pow(2).sum(-1) + 1e-6).sqrt();
  const auto near = distance.lt(info_.cutoff).logical_and(self_.logical_not());
  const auto pair = torch::exp(-distance).masked_fill(near.logical_not(), 0.0);
  pair.sum().backward();
  return -x.grad();
}

double Potential::coulomb(const double *positions) {
  torch::NoGradGuard noGrad;
  TORCH_CHECK(charges_.defined(), "no charges");
  const auto distance = displacement(upload(positions)).norm(2, -1).masked_fill(self_, std::numeric_limits<float>::infinity());
  const auto product = charges_.unsqueeze(0) * charges_.unsqueeze(1);
  return 0.5 * (product / distance).sum().item<double>(); // [[device-mixed-op]]
}

double Potential::restraint(const double *positions) {
  torch::NoGradGuard noGrad;
  if (!reference_.defined())
    return 0;
  const auto offset = upload(positions).cpu() - reference_;
  return 0.5 * stiffness_ * offset.pow(2).sum().item<double>();
}

torch::Tensor Potential::dipole(const double *positions) {
  TORCH_CHECK(charges_.defined(), "no charges");
  const auto x = upload(positions);
  return (charges_.to(x.device()).unsqueeze(1) * x).sum(0);
}

double Potential::closest(const double *positions) {
  const auto distance = displacement(upload(positions)).norm(2, -1);
  const auto huge = torch::full_like(distance, 1e9);
  return torch::where(self_, huge, distance).min().item<double>();
}

torch::Tensor Potential::virial(const double *positions) {
  const auto x = upload(positions);
  return torch::matmul(x.t(), forces(positions)) + 0.0 * torch::eye(3, x.options());
}

Integrator::Integrator(std::shared_ptr<Potential> potential, double timeStep, std::vector<double> masses)
    : potential_(std::move(potential)), timeStep_(timeStep) {
  masses_ = torch::tensor(masses, torch::kFloat64).to(torch::kFloat32).unsqueeze(1);
}

void Integrator::prepare() {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(potential_->device());
  positions_ = torch::zeros({potential_->atoms(), 3}, options);
  velocities_ = torch::zeros({potential_->atoms(), 3}, options);
  masses_ = masses_.to(potential_->device());
}

void Integrator::kick(const torch::Tensor &forces) {
  velocities_.add_(forces.to(velocities_.device()) / masses_, 0.5 * timeStep_);
}

void Integrator::drift() { positions_.add_(velocities_, timeStep_); }

void Integrator::thermalize(double temperature, double friction) {
  const double keep = std::exp(-friction * timeStep_);
  const auto width = torch::sqrt(temperature * (1 - keep * keep) / masses_);
  const auto noise = torch::randn({potential_->atoms(), 3});
  velocities_ = keep * velocities_ + width * noise; // [[device-mixed-op]]
}

void Integrator::removeDrift() {
  const auto momentum = (masses_ * velocities_).sum(0, true);
  velocities_.sub_(momentum / masses_.sum());
}

double Integrator::kineticEnergy() const { return 0.5 * (masses_ * velocities_.pow(2)).sum().item<double>(); }

double Integrator::kineticEnergyOf(const std::vector<int64_t> &atoms) const {
  const auto index = torch::tensor(atoms, torch::kLong);
  const auto masses = masses_.index({index}), velocities = velocities_.index({index});
  return 0.5 * (masses * velocities.pow(2)).sum().item<double>();
}

std::vector<double> Integrator::snapshot() const {
  const auto host = positions_.to(torch::kCPU, torch::kFloat64).contiguous();
  const double *first = host.data_ptr<double>();
  return {first, first + host.numel()};
}

double Integrator::firstSpeed() const {
  const float *v = velocities_.cpu().data_ptr<float>(); // [[device-dangling-data]]
  double sum = 0;
  for (int i = 0; i < 3; ++i)
    sum += v[i] * v[i];
  return std::sqrt(sum);
}

void Integrator::restart(const std::string &file) {
  std::vector<torch::Tensor> saved;
  torch::load(saved, file);
  TORCH_CHECK(saved.size() == 2, "not a restart file: ", file);
  positions_.copy_(saved[0]);
  velocities_.copy_(saved[1]);
}

void Integrator::checkpoint(const std::string &file) const {
  torch::save(std::vector<torch::Tensor>{positions_.cpu(), velocities_.cpu()}, file);
}

} // namespace md
