#include "plugin.h"

#include "potential.h"

#include <cstring>

struct md_potential {
  std::unique_ptr<md::Potential> impl;
};

namespace {

thread_local std::string message;

template <typename F>
int run(md_potential *self, F &&body) {
  if (!self || !self->impl) {
    message = "no potential";
    return MD_INVALID;
  }
  try {
    body(*self->impl);
  } catch (const std::exception &error) {
    message = error.what();
    return MD_FAILED;
  }
  return MD_OK;
}

void store(const torch::Tensor &values, double *out) {
  const auto host = values.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  std::memcpy(out, host.data_ptr<double>(), sizeof(double) * host.numel());
}

} // namespace

extern "C" {

const char *md_message(void) { return message.c_str(); }

md_potential *md_create(const char *model_file, int gpu, int atoms) {
  try {
    md::PotentialInfo info;
    info.file = model_file;
    info.gpu = gpu;
    info.atoms = atoms;
    auto handle = std::make_unique<md_potential>();
    handle->impl = std::make_unique<md::Potential>(info);
    handle->impl->initialize();
    return handle.release();
  } catch (const std::exception &error) {
    message = error.what();
    return nullptr;
  }
}

void md_destroy(md_potential *self) { delete self; }

int md_set_types(md_potential *self, const int *types) {
  return run(self, [&](md::Potential &p) { p.setTypes(types); });
}

int md_set_charges(md_potential *self, const double *charges) {
  return run(self, [&](md::Potential &p) { p.setCharges(charges); });
}

int md_set_cell(md_potential *self, const double cell[3]) {
  return run(self, [&](md::Potential &p) { p.setCell(cell); });
}

int md_set_restraint(md_potential *self, const double *reference, double stiffness) {
  return run(self, [&](md::Potential &p) { p.setRestraint(reference, stiffness); });
}

int md_energy(md_potential *self, const double *positions, double *energy) {
  return run(self, [&](md::Potential &p) { *energy = p.energy(positions); });
}

int md_forces(md_potential *self, const double *positions, double *forces) {
  return run(self, [&](md::Potential &p) { store(p.forces(positions), forces); });
}

int md_forces_direct(md_potential *self, const double *positions, double *forces) {
  return run(self, [&](md::Potential &p) {
    const auto values = p.forces(positions).to(torch::kFloat64).contiguous();
    const double *source = values.data_ptr<double>();
    for (int64_t i = 0; i < values.numel(); ++i)
      forces[i] += source[i]; // [[device-host-access]]
  });
}

int md_coulomb(md_potential *self, const double *positions, double *energy) {
  return run(self, [&](md::Potential &p) { *energy = p.coulomb(positions); });
}

int md_restraint_energy(md_potential *self, const double *positions, double *energy) {
  return run(self, [&](md::Potential &p) { *energy = p.restraint(positions); });
}

int md_dipole(md_potential *self, const double *positions, double dipole[3]) {
  return run(self, [&](md::Potential &p) { store(p.dipole(positions), dipole); });
}

int md_closest(md_potential *self, const double *positions, double *distance) {
  return run(self, [&](md::Potential &p) { *distance = p.closest(positions); });
}

int md_virial(md_potential *self, const double *positions, double virial[9]) {
  return run(self, [&](md::Potential &p) { store(p.virial(positions), virial); });
}

} // extern "C"

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

const char *file() {
  static const char *path = "md_model.pt";
  torch::jit::Module module("Potential");
  module.register_parameter("weight", torch::rand({3}), false);
  module.define("def forward(self, x):\n  return (x * self.weight).sum()\n");
  module.save(path);
  return path;
}
md_potential *made() {
  auto *p = md_create(file(), 2, 4);
  if (!p)
    throw std::runtime_error(md_message());
  return p;
}
void must(int status) {
  if (status != MD_OK)
    throw std::runtime_error(md_message());
}
const double positions[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
double out[12];
md::Integrator integrator() {
  md::PotentialInfo info;
  info.file = file();
  info.gpu = 2;
  info.atoms = 4;
  auto p = std::make_shared<md::Potential>(info);
  p->initialize();
  md::Integrator i(p, 0.01, {1, 2, 3, 4});
  i.prepare();
  return i;
}

void set_types_ok() { const int types[] = {0, 1, 0, 1}; must(md_set_types(made(), types)); }
void energy_bad() { must(md_energy(made(), positions, out)); }
void forces_ok() { auto *p = made(); const double cell[] = {5, 5, 5}; must(md_set_cell(p, cell)); must(md_forces(p, positions, out)); }
void forces_direct_bad() { must(md_forces_direct(made(), positions, out)); }
void coulomb_bad() { auto *p = made(); must(md_set_charges(p, positions)); must(md_coulomb(p, positions, out)); }
void restraint_ok() { auto *p = made(); must(md_set_restraint(p, positions, 2)); must(md_restraint_energy(p, positions, out)); }
void dipole_ok() { auto *p = made(); must(md_set_charges(p, positions)); must(md_dipole(p, positions, out)); }
void closest_ok() { must(md_closest(made(), positions, out)); }
void virial_ok() { must(md_virial(made(), positions, out)); }
void destroy_ok() { md_destroy(made()); }
void kick_ok() { integrator().kick(torch::rand({4, 3})); }
void drift_ok() { integrator().drift(); }
void thermalize_bad() { integrator().thermalize(1.0, 0.1); }
void remove_drift_ok() { integrator().removeDrift(); }
void kinetic_ok() { integrator().kineticEnergy(); }
void kinetic_of_ok() { integrator().kineticEnergyOf({0, 2}); }
void snapshot_ok() { integrator().snapshot(); }
void first_speed_dangling_bad() { integrator().firstSpeed(); }
void restart_ok() {
  auto i = integrator();
  i.checkpoint("md.chk");
  i.restart("md.chk");
  i.drift();
}

} // namespace

DT_MAIN(set_types_ok, energy_bad, forces_ok, forces_direct_bad, coulomb_bad, restraint_ok, dipole_ok, closest_ok,
        virial_ok, destroy_ok, kick_ok, drift_ok, thermalize_bad, remove_drift_ok, kinetic_ok, kinetic_of_ok, snapshot_ok,
        first_speed_dangling_bad, restart_ok)
#endif
