#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct CUevent_st;

namespace mdplug {

// Pair energies of a small network over Gaussian radial functions.
struct EnergyNetImpl : torch::nn::Module {
  explicit EnergyNetImpl(int64_t basis = 16) {
    scale = register_parameter("scale", torch::ones({1}));
    hidden = register_module("hidden", torch::nn::Linear(basis, 8));
    out = register_module("out", torch::nn::Linear(8, 1));
    shift = register_buffer("shift", torch::zeros({1}));
  }
  torch::Tensor expand(const torch::Tensor &distances) {
    const auto scaled = (distances * scale).unsqueeze(-1);
    return torch::exp(-4 * (scaled - centres).pow(2)); // [[device-unregistered-tensor]]
  }
  torch::Tensor forward(const torch::Tensor &distances) {
    return (out(torch::silu(hidden(expand(distances)))) + shift).sum();
  }

  torch::Tensor centres = torch::linspace(0.5, 5.0, 16);
  torch::Tensor scale, shift;
  torch::nn::Linear hidden{nullptr}, out{nullptr};
};
TORCH_MODULE(EnergyNet);

class Potential {
public:
  virtual ~Potential() = default;
  virtual torch::Tensor energy(const torch::Tensor &positions) = 0;
  virtual void to(torch::Device) {}
};

class HarmonicBonds : public Potential {
public:
  HarmonicBonds(const std::vector<int64_t> &pairs, const std::vector<float> &lengths, float k);
  torch::Tensor energy(const torch::Tensor &positions) override;
  void to(torch::Device device) override;

private:
  torch::Tensor first_, second_, lengths_;
  float k_;
};

class LennardJones : public Potential {
public:
  LennardJones(const std::vector<int64_t> &types, const std::vector<float> &epsilon);
  torch::Tensor energy(const torch::Tensor &positions) override;

private:
  std::vector<int64_t> types_;
  torch::Tensor epsilon_; // [types, types]
};

class Coulomb : public Potential {
public:
  explicit Coulomb(const std::string &chargeFile) { torch::load(charges_, chargeFile); }
  torch::Tensor energy(const torch::Tensor &positions) override;
  torch::Tensor external(const torch::Tensor &field) const;

private:
  torch::Tensor charges_;
};

class System {
public:
  System(int64_t atoms, torch::Device device);
  void add(const std::string &name, std::unique_ptr<Potential> potential);
  void setPositions(const double *coordinates);
  void setBox(const std::vector<double> &vectors) { box_ = vectors; }
  torch::Tensor wrapped() const;
  torch::Tensor imageShift(const torch::Tensor &delta) const;
  std::pair<double, torch::Tensor> evaluate();
  std::pair<double, torch::Tensor> evaluateOne(const std::string &name);
  void step(const std::string &integrator, double dt);
  double temperature() const;
  const torch::Device &device() const { return device_; }
  const torch::Tensor &positions() const { return positions_; }
  int64_t atoms() const { return atoms_; }

private:
  int64_t atoms_;
  torch::Device device_;
  torch::Tensor positions_, velocities_, masses_;
  std::vector<double> box_ = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::map<std::string, std::unique_ptr<Potential>> potentials_;
  std::map<std::string, std::function<void(double)>> integrators_;
};

// neighbors.cu
class NeighborList {
public:
  NeighborList(double cutoff, int64_t capacity);
  ~NeighborList();
  void build(const torch::Tensor &positions);
  int64_t found() const;
  const torch::Tensor &pairs() const { return pairs_; }

private:
  double cutoff_;
  int64_t capacity_;
  CUevent_st *built_ = nullptr;
  torch::Tensor pairs_, count_;
};

torch::Tensor pairDistances(const torch::Tensor &positions, const torch::Tensor &pairs);
torch::Tensor spreadCharges(const torch::Tensor &positions, const torch::Tensor &charges, int64_t grid);
torch::Tensor gridSpectrum(const torch::Tensor &grid);

} // namespace mdplug
