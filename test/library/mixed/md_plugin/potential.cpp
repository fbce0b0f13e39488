#include "potential.h"

#include <cmath>
#include <iostream>
#include <mutex>

namespace mdnn {

RadialBasisImpl::RadialBasisImpl(int64_t count, double cutoff, int64_t out) : cutoff_(cutoff) {
  TORCH_CHECK(count > 1, "a radial basis needs two functions");
  centers_ = torch::linspace(0.0, cutoff, count);
  gamma_ = register_buffer("gamma", torch::full({1}, 10.0 / cutoff));
  mix_ = register_module("mix", torch::nn::Linear(count, out));
}

torch::Tensor RadialBasisImpl::forward(const torch::Tensor &r) {
  auto clipped = r.clamp_max(cutoff_).unsqueeze(-1) * gamma_;
  auto offset = clipped - centers_ * gamma_; // [[device-unregistered-tensor]]
  return mix_(torch::exp(-offset.pow(2)));
}

torch::Tensor CosineEnvelopeImpl::forward(const torch::Tensor &r) {
  if (!frequencies_.defined() || frequencies_.device() != r.device())
    frequencies_ = torch::arange(1, 4, r.options()) * (M_PI / cutoff_);
  auto phases = r.unsqueeze(-1) * frequencies_;
  return (0.5 * (torch::cos(phases) + 1.0)) * (r < cutoff_).unsqueeze(-1).to(r.scalar_type());
}

AtomNetImpl::AtomNetImpl(int64_t species, int64_t hidden) {
  embed_ = register_module("embed", torch::nn::Embedding(species, hidden));
  in_ = register_module("in", torch::nn::Linear(hidden + 1, hidden));
  out_ = register_module("out", torch::nn::Linear(hidden, 1));
  this->scale_ = register_buffer("scale", torch::ones({species}));
}

torch::Tensor AtomNetImpl::forward(const torch::Tensor &species, const torch::Tensor &density) {
  auto h = torch::cat({embed_(species), density.unsqueeze(-1)}, -1);
  h = torch::silu(in_(h));
  return out_(h).squeeze(-1) * scale_.index_select(0, species);
}

DensityPotential::DensityPotential(const PotentialOptions &options)
    : Potential(options), builder_(options.cutoff),
      net_(static_cast<int64_t>(options.species.size()), options.hidden),
      basis_(6, options.cutoff, options.hidden), envelope_(options.cutoff) {
  net_->to(device_);
  basis_->to(device_);
  envelope_->to(device_);
  net_->eval();
}

torch::Tensor DensityPotential::density(const NeighborGraph &graph, const torch::Tensor &positions) {
  auto shift = graph.shifts.to(positions.device());
  auto from = positions.index_select(0, graph.edge_index[0]);
  auto to = positions.index_select(0, graph.edge_index[1]);
  auto r = (to - from + shift).norm(2, {-1});
  auto weight = torch::exp(-r) * (r < options_.cutoff).to(r.scalar_type());
  return torch::zeros({positions.size(0)}, positions.options()).index_add(0, graph.edge_index[0], weight);
}

double DensityPotential::compute(const AtomView &atoms) {
  auto graph = builder_.build(atoms).to(device_);
  auto positions = graph.positions.set_requires_grad(true);
  auto energies = net_->forward(graph.species, density(graph, positions));
  auto total = energies.sum();
  if (!atoms.f)
    return total.item<double>();
  total.backward();
  const auto forces = positions.grad().neg().to(torch::kCPU, torch::kDouble).contiguous();
  const double *source = forces.data_ptr<double>();
  for (int64_t i = 0; i < 3 * atoms.nlocal; ++i)
    atoms.f[i] += source[i];
  return total.item<double>();
}

torch::Tensor DensityPotential::edgeVectors(const AtomView &atoms) {
  const auto graph = builder_.build(atoms).to(device_);
  if (graph.numEdges() == 0)
    return torch::empty({0, 3}, device_);
  auto from = graph.positions.index_select(0, graph.edge_index[0]);
  auto to = graph.positions.index_select(0, graph.edge_index[1]);
  return to - from + graph.shifts; // [[device-mixed-op]]
}

void DensityPotential::setReferenceEnergies(const std::vector<double> &energies) {
  TORCH_CHECK(energies.size() == options_.species.size(), "one reference energy for each species");
  reference_ = torch::tensor(energies, torch::kFloat);
}

double DensityPotential::cohesiveEnergy(const AtomView &atoms) {
  if (!reference_.defined())
    return compute(atoms);
  torch::NoGradGuard no_grad;
  auto graph = builder_.build(atoms).to(device_);
  auto energies = net_->forward(graph.species, density(graph, graph.positions));
  auto isolated = reference_.index_select(0, graph.species); // [[device-mixed-op]]
  return (energies - isolated).sum().item<double>();
}

void DensityPotential::setMasses(const std::vector<double> &masses) {
  TORCH_CHECK(masses.size() == options_.species.size(), "one mass for each species");
  masses_ = torch::tensor(masses, torch::kFloat).to(device_);
}

torch::Tensor DensityPotential::momenta(const torch::Tensor &velocities, const AtomView &atoms) {
  TORCH_CHECK(masses_.defined(), "setMasses() comes first");
  auto types = torch::from_blob(const_cast<int *>(atoms.type), {atoms.nlocal}, torch::kInt).to(torch::kLong);
  auto perAtom = masses_.index({types});
  return velocities.to(device_) * perAtom.unsqueeze(-1);
}

void DensityPotential::addForces(const AtomView &atoms) {
  auto graph = builder_.build(atoms).to(device_);
  auto positions = graph.positions.set_requires_grad(true);
  auto total = net_->forward(graph.species, density(graph, positions)).sum();
  auto gradient = torch::autograd::grad({total}, {positions})[0].to(torch::kDouble).contiguous();
  const double *values = gradient.data_ptr<double>();
  for (int64_t i = 0; i < 3 * atoms.nlocal; ++i)
    atoms.f[i] -= values[i]; // [[device-host-access]]
}

void DensityPotential::virial(const AtomView &atoms, double *out) {
  auto graph = builder_.build(atoms).to(device_);
  auto positions = graph.positions.set_requires_grad(true);
  auto total = net_->forward(graph.species, density(graph, positions)).sum();
  auto forces = torch::autograd::grad({total}, {positions})[0].neg();
  auto tensor = torch::einsum("ni,nj->ij", {forces, graph.positions.detach()}).cpu();
  auto w = tensor.accessor<float, 2>();
  static const int voigt[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
  for (int k = 0; k < 6; ++k)
    out[k] += w[voigt[k][0]][voigt[k][1]];
}

torch::Tensor DensityPotential::basis(const AtomView &atoms) {
  auto graph = builder_.build(atoms).to(device_);
  auto r = (graph.positions.unsqueeze(0) - graph.positions.unsqueeze(1)).norm(2, {-1});
  return basis_->forward(r.flatten());
}

torch::Tensor DensityPotential::envelope(const AtomView &atoms) {
  auto graph = builder_.build(atoms).to(device_);
  auto r = (graph.positions.unsqueeze(0) - graph.positions.unsqueeze(1)).norm(2, {-1});
  return envelope_->forward(r.flatten());
}

ScriptPotential::ScriptPotential(const PotentialOptions &options) : Potential(options) {
  try {
    module_ = torch::jit::load(options.model_path, device_);
  } catch (const c10::Error &error) {
    std::cerr << "mdnn: cannot load " << options.model_path << "\n";
    throw;
  }
  module_.eval();
}

double ScriptPotential::compute(const AtomView &atoms) {
  torch::NoGradGuard no_grad;
  auto positions = torch::from_blob(const_cast<double *>(atoms.x), {atoms.nlocal, 3}, torch::kDouble);
  std::vector<torch::jit::IValue> inputs;
  inputs.emplace_back(positions.to(device_, torch::kFloat));
  return module_.forward(inputs).toTensor().sum().item<double>();
}

bool Committee::addMember(const std::string &path) {
  try {
    auto module = torch::jit::load(path);
    module.eval();
    members_.push_back(module);
  } catch (const c10::Error &) {
    return false;
  }
  return true;
}

bool Committee::addFrozen(const std::string &path) {
  try {
    auto module = torch::jit::load(path);
    module.to(device_);
    module.eval();
    frozen_.push_back(std::move(module));
  } catch (const c10::Error &) {
    return false;
  }
  return true;
}

double Committee::deviation(const AtomView &atoms) {
  TORCH_CHECK(members_.size() > 1, "a committee needs two members");
  torch::NoGradGuard no_grad;
  auto positions = torch::from_blob(const_cast<double *>(atoms.x), {atoms.nlocal, 3}, torch::kDouble)
                       .to(torch::kFloat)
                       .to(device_);
  std::vector<torch::Tensor> energies;
  for (auto &member : members_)
    energies.push_back(member.forward({positions}).toTensor().sum()); // [[device-load-placement]]
  return torch::stack(energies).std().item<double>();
}

double Committee::frozenMean(const AtomView &atoms) {
  torch::NoGradGuard no_grad;
  auto positions = torch::from_blob(const_cast<double *>(atoms.x), {atoms.nlocal, 3}, torch::kDouble)
                       .to(torch::kFloat)
                       .to(device_);
  auto sum = torch::zeros({}, device_);
  for (auto &member : frozen_)
    sum += member.forward({positions}).toTensor().sum();
  return frozen_.empty() ? 0 : sum.item<double>() / static_cast<double>(frozen_.size());
}

namespace {
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, PotentialFactory> factories;
};
Registry &registry() {
  static Registry instance;
  return instance;
}
const bool registered = [] {
  registerPotential("density", [](const PotentialOptions &o) { return std::make_unique<DensityPotential>(o); });
  registerPotential("script", [](const PotentialOptions &o) { return std::make_unique<ScriptPotential>(o); });
  return true;
}();
} // namespace

void registerPotential(const std::string &name, PotentialFactory factory) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().factories[name] = std::move(factory);
}

std::unique_ptr<Potential> makePotential(const std::string &name, const PotentialOptions &options) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto found = registry().factories.find(name);
  if (found == registry().factories.end())
    return nullptr;
  return found->second(options);
}

} // namespace mdnn

#ifdef DT_RUN
#include "../../../cases/cases.h"
#include <unistd.h>
using namespace mdnn;
static std::vector<double> xs{0, 0, 0, 1, 0, 0, 0, 1, 0, 9, 9, 9}, fs(12, 0.0);
static std::vector<int> types{0, 1, 0, 1};
static AtomView atoms() {
  AtomView view;
  view.x = xs.data(), view.f = fs.data(), view.type = types.data(), view.nlocal = 4;
  return view;
}
static PotentialOptions options(std::string path = "") {
  PotentialOptions o;
  o.device_index = 1, o.model_path = path;
  return o;
}
static std::string exported() {
  torch::jit::Module m("Exported");
  m.register_parameter("w", torch::rand({3, 2}), false);
  m.define("def forward(self, x: Tensor) -> Tensor:\n  return torch.mm(x, self.w)\n");
  const std::string path = "md_" + std::to_string(::getpid()) + ".pt";
  m.save(path);
  return path;
}
void compute_ok() { makePotential("density", options())->compute(atoms()); }
void script_compute_ok() { makePotential("script", options(exported()))->compute(atoms()); }
void edge_vectors_bad() { DensityPotential(options()).edgeVectors(atoms()); }
void cohesive_bad() { DensityPotential p(options()); p.setReferenceEnergies({1, 2}); p.cohesiveEnergy(atoms()); }
void momenta_ok() { DensityPotential p(options()); p.setMasses({1, 2}); p.momenta(torch::rand({4, 3}), atoms()); }
void add_forces_bad() { DensityPotential(options()).addForces(atoms()); }
void virial_ok() { double w[6]; DensityPotential(options()).virial(atoms(), w); }
void basis_bad() { DensityPotential(options()).basis(atoms()); }
void envelope_ok() { DensityPotential(options()).envelope(atoms()); }
void deviation_bad() { Committee c(options()); c.addMember(exported()), c.addMember(exported()); c.deviation(atoms()); }
void frozen_mean_ok() { Committee c(options()); c.addFrozen(exported()); c.frozenMean(atoms()); }
void degrees_ok() { GraphBuilder b(4); b.degrees(b.build(atoms()).to(torch::Device(torch::kCUDA, 1))); }
void neighbor_counts_ok() { GraphBuilder b(4); b.neighborCounts(b.build(atoms()).to(torch::Device(torch::kCUDA, 1))); }
void build_ok() { GraphBuilder b(4); b.build(atoms()); b.build(atoms()); }
DT_MAIN(compute_ok, script_compute_ok, edge_vectors_bad, cohesive_bad, momenta_ok, add_forces_bad, virial_ok, basis_bad,
        envelope_ok, deviation_bad, frozen_mean_ok, degrees_ok, neighbor_counts_ok, build_ok)
#endif
