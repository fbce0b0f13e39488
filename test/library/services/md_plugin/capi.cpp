#include "potential.h"

#include <cstring>

using mdplug::System;

struct mdp_context {
  std::unique_ptr<System> system;
  mdplug::EnergyNet net{nullptr};
  torch::Tensor lastForces;
};

extern "C" {

mdp_context *mdp_create(const char *platform, int deviceIndex, int atoms) {
  auto *context = new mdp_context;
  const bool gpu = std::strcmp(platform, "CUDA") == 0;
  const auto device = gpu ? torch::Device(torch::kCUDA, deviceIndex) : torch::Device(torch::kCPU);
  context->system = std::make_unique<System>(atoms, device);
  context->net = mdplug::EnergyNet(16);
  context->net->to(device);
  return context;
}

void mdp_destroy(mdp_context *context) { delete context; }

void mdp_add_bonds(mdp_context *context, int bonds, const int *pairs, const float *lengths, float k) {
  context->system->add("bonds", std::make_unique<mdplug::HarmonicBonds>(
                                    std::vector<int64_t>(pairs, pairs + 2 * bonds),
                                    std::vector<float>(lengths, lengths + bonds), k));
}

double mdp_compute(mdp_context *context, const double *coordinates, double *forces) {
  context->system->setPositions(coordinates);
  auto [energy, gradient] = context->system->evaluate();
  context->lastForces = gradient.to(torch::kDouble).contiguous();
  if (forces)
    std::memcpy(forces, context->lastForces.data_ptr<double>(), sizeof(double) * 3 * context->system->atoms()); // [[device-host-access]]
  return energy;
}

double mdp_compute_group(mdp_context *context, const char *group, double *forces) {
  const auto [energy, gradient] = context->system->evaluateOne(group);
  const auto host = gradient.to(torch::TensorOptions(torch::kCPU).dtype(torch::kDouble)).contiguous();
  const auto rows = host.accessor<double, 2>();
  for (int64_t i = 0; i < rows.size(0); ++i)
    for (int64_t axis = 0; axis < 3; ++axis)
      forces[3 * i + axis] += rows[i][axis];
  return energy;
}

double mdp_network_energy(mdp_context *context, const float *distances, int count) {
  auto d = torch::from_blob(const_cast<float *>(distances), {count}).to(context->system->device());
  return context->net->forward(d).item<double>();
}

void mdp_positions(mdp_context *context, float *out) {
  const auto &positions = context->system->positions();
  auto target = torch::from_blob(out, {context->system->atoms(), 3});
  target.copy_(positions);
}

} // extern "C"

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace mdplug;
static const double coords[9] = {0.1, 0.2, 0.3, 1.4, 0.5, 0.6, 0.7, 1.8, 0.9};
static System make(int i = 1) { return System(3, dtl::dev(i)); }
static mdp_context *context() {
  auto *c = mdp_create("CUDA", 1, 3);
  const int pairs[] = {0, 1, 1, 2};
  const float lengths[] = {1, 1};
  mdp_add_bonds(c, 2, pairs, lengths, 3);
  return c;
}
static std::unique_ptr<Potential> lj() { return std::make_unique<LennardJones>(std::vector<int64_t>{0, 1, 0}, std::vector<float>{1, 2}); }
static std::unique_ptr<Coulomb> coulomb() { torch::save(torch::rand({3}), "charges.pt"); return std::make_unique<Coulomb>("charges.pt"); }
static void network_bad() { float d[2] = {1, 2}; mdp_network_energy(context(), d, 2); }
static void list_bad() { NeighborList(1, 8).build(dtl::gpu({3, 3})); }
static void spread_bad() { spreadCharges(dtl::gpu({3, 3}), dtl::gpu({3}), 4); }
static void lj_bad() { System s(3, dtl::dev(1)); s.setPositions(coords); s.add("lj", lj()); s.evaluate(); }
static void external_bad() { coulomb()->external(torch::rand({3})); }
static void langevin_bad() { System s(3, dtl::dev(1)); s.step("langevin", 0.1); }
static void wrapped_bad() { System s(3, dtl::dev(1)); s.wrapped(); }
static void compute_bad() { double f[9]; mdp_compute(context(), coords, f); }
static void group_ok() {
  double f[9] = {};
  float p[9];
  auto *c = context();
  mdp_compute(c, coords, nullptr);
  mdp_compute_group(c, "bonds", f);
  mdp_positions(c, p);
  mdp_destroy(c);
}
static void cpu_ok() { System s(3, torch::kCPU); s.setPositions(coords); s.add("lj", lj()); s.evaluate(); s.wrapped(); s.step("langevin", 0.1); }
static void steps_ok() {
  System s(3, dtl::dev(1));
  s.setPositions(coords);
  s.add("coulomb", coulomb());
  s.step("verlet", 0.1);
  s.step("brownian", 0.1);
  s.temperature();
  s.imageShift(dtl::gpu({4, 3}, 2));
}
static void distances_ok() { auto x = dtl::gpu({3, 3}).requires_grad_(); pairDistances(x, dtl::ints({4, 2})).sum().backward(); }
static void reciprocal_ok() { gridSpectrum(dtl::gpu({4, 4, 4})); }
static void list_ok() { NeighborList l(1, 8); l.build(dtl::gpu({3, 3}, 0)); l.found(); }
DT_MAIN(network_bad, list_bad, spread_bad, lj_bad, external_bad, langevin_bad, wrapped_bad, compute_bad, group_ok, cpu_ok,
        steps_ok, distances_ok, reciprocal_ok, list_ok)
#endif
