#pragma once

#include <torch/script.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

namespace md {

struct PotentialInfo {
  std::string file;
  int gpu = 0;
  int64_t atoms = 0;
  double cutoff = 2.5;
};

class Potential {
public:
  explicit Potential(PotentialInfo info) : info_(std::move(info)) {}

  void initialize();
  void setTypes(const int *types);
  void setCharges(const double *charges);
  void setCell(const double *cell);
  void setRestraint(const double *reference, double stiffness);

  double energy(const double *positions);
  torch::Tensor forces(const double *positions);
  double coulomb(const double *positions);
  double restraint(const double *positions);
  torch::Tensor dipole(const double *positions);
  double closest(const double *positions);
  torch::Tensor virial(const double *positions);

  int64_t atoms() const { return info_.atoms; }
  const torch::Device &device() const { return *device_; }

private:
  torch::Tensor upload(const double *positions) const;
  torch::Tensor displacement(const torch::Tensor &positions) const;

  PotentialInfo info_;
  torch::jit::Module module_;
  std::unique_ptr<torch::Device> device_;
  torch::Tensor types_, charges_, cell_, reference_, self_;
  double stiffness_ = 0;
};

// Velocity Verlet with an optional Langevin thermostat.
class Integrator {
public:
  Integrator(std::shared_ptr<Potential> potential, double timeStep, std::vector<double> masses);
  void prepare();

  void kick(const torch::Tensor &forces);
  void drift();
  void thermalize(double temperature, double friction);
  void removeDrift();
  double kineticEnergy() const;
  double kineticEnergyOf(const std::vector<int64_t> &atoms) const;
  torch::Tensor &velocities() { return velocities_; }
  torch::Tensor &positions() { return positions_; }
  std::vector<double> snapshot() const;
  double firstSpeed() const;
  void restart(const std::string &file);
  void checkpoint(const std::string &file) const;

private:
  std::shared_ptr<Potential> potential_;
  double timeStep_;
  torch::Tensor masses_;
  torch::Tensor positions_, velocities_;
};

} // namespace md
