// Neural network potentials behind the interface that the simulation engine's plug-in calls.
#pragma once

#include <torch/script.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace mdnn {

struct PotentialOptions {
  std::string model_path;
  std::vector<std::string> species{"H", "O"};
  double cutoff = 4.0;
  int device_index = -1; // below 0: run on the CPU
  int64_t hidden = 8;
  bool compute_virial = false;
};

inline torch::Device deviceOf(const PotentialOptions &options) {
  if (options.device_index < 0 || !torch::cuda::is_available())
    return torch::kCPU;
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(options.device_index));
}

/// Arrays of the engine; all of them are the host's.
struct AtomView {
  const double *x = nullptr;
  double *f = nullptr;
  const int *type = nullptr;
  int64_t nlocal = 0;
  double box[3] = {10, 10, 10};
};

struct NeighborGraph {
  torch::Tensor positions;  // [n, 3] float
  torch::Tensor species;    // [n] long
  torch::Tensor edge_index; // [2, e] long
  torch::Tensor shifts;     // [e, 3] float
  torch::Tensor cell;       // [3] float

  int64_t numEdges() const { return edge_index.defined() ? edge_index.size(1) : 0; }
  NeighborGraph to(const torch::Device &device) const;
};

class GraphBuilder {
public:
  explicit GraphBuilder(double cutoff) : cutoff_(cutoff) {}
  NeighborGraph build(const AtomView &atoms);
  torch::Tensor degrees(const NeighborGraph &graph) const;
  std::vector<int64_t> neighborCounts(const NeighborGraph &graph) const;

private:
  double cutoff_;
  torch::Tensor staging_;
};

struct RadialBasisImpl : torch::nn::Module {
  RadialBasisImpl(int64_t count, double cutoff, int64_t out);
  torch::Tensor forward(const torch::Tensor &r);

  double cutoff_;
  torch::Tensor centers_, gamma_;
  torch::nn::Linear mix_{nullptr};
};
TORCH_MODULE(RadialBasis);

struct CosineEnvelopeImpl : torch::nn::Module {
  explicit CosineEnvelopeImpl(double cutoff) : cutoff_(cutoff) {}
  torch::Tensor forward(const torch::Tensor &r);

  double cutoff_;
  torch::Tensor frequencies_;
};
TORCH_MODULE(CosineEnvelope);

struct AtomNetImpl : torch::nn::Module {
  AtomNetImpl(int64_t species, int64_t hidden);
  torch::Tensor forward(const torch::Tensor &species, const torch::Tensor &density);

  torch::nn::Embedding embed_{nullptr};
  torch::nn::Linear in_{nullptr}, out_{nullptr};
  torch::Tensor scale_;
};
TORCH_MODULE(AtomNet);

class Potential {
public:
  explicit Potential(const PotentialOptions &options) : options_(options), device_(deviceOf(options)) {}
  virtual ~Potential() = default;
  virtual double compute(const AtomView &atoms) = 0;
  virtual const char *name() const = 0;
  const torch::Device &device() const { return device_; }

protected:
  PotentialOptions options_;
  torch::Device device_;
};

/// A Behler-Parrinello-like network written here.
class DensityPotential : public Potential {
public:
  explicit DensityPotential(const PotentialOptions &options);
  double compute(const AtomView &atoms) override;
  const char *name() const override { return "density"; }

  torch::Tensor edgeVectors(const AtomView &atoms);
  void setReferenceEnergies(const std::vector<double> &energies);
  double cohesiveEnergy(const AtomView &atoms);
  void setMasses(const std::vector<double> &masses);
  torch::Tensor momenta(const torch::Tensor &velocities, const AtomView &atoms);
  void addForces(const AtomView &atoms);
  void virial(const AtomView &atoms, double *out);
  torch::Tensor basis(const AtomView &atoms);
  torch::Tensor envelope(const AtomView &atoms);

private:
  torch::Tensor density(const NeighborGraph &graph, const torch::Tensor &positions);

  GraphBuilder builder_;
  AtomNet net_;
  RadialBasis basis_;
  CosineEnvelope envelope_;
  torch::Tensor reference_, masses_;
};

/// Models exported from Python.
class ScriptPotential : public Potential {
public:
  explicit ScriptPotential(const PotentialOptions &options);
  double compute(const AtomView &atoms) override;
  const char *name() const override { return "script"; }

private:
  torch::jit::Module module_;
};

/// Several exported models that vote; their spread says where to run another ab initio calculation.
class Committee {
public:
  explicit Committee(const PotentialOptions &options) : options_(options), device_(deviceOf(options)) {}
  bool addMember(const std::string &path);
  bool addFrozen(const std::string &path);
  double deviation(const AtomView &atoms);
  double frozenMean(const AtomView &atoms);
  size_t size() const { return members_.size(); }

private:
  PotentialOptions options_;
  torch::Device device_;
  std::vector<torch::jit::Module> members_;
  std::vector<torch::jit::Module> frozen_;
};

using PotentialFactory = std::function<std::unique_ptr<Potential>(const PotentialOptions &)>;
void registerPotential(const std::string &name, PotentialFactory factory);
std::unique_ptr<Potential> makePotential(const std::string &name, const PotentialOptions &options);

} // namespace mdnn
