#include "lbm_plugin.h"

#include "lattice.h"

#include <cuda_runtime.h>

#include <cstring>
#include <memory>
#include <string>

namespace {

thread_local std::string last_error;

template <typename F>
lbm_status guarded(F&& body) {
  try {
    body();
    return LBM_OK;
  } catch (const c10::Error& e) {
    last_error = e.what_without_backtrace();
    return LBM_DEVICE_FAILURE;
  } catch (const std::exception& e) {
    last_error = e.what();
    return LBM_BAD_ARGUMENT;
  }
}

} // namespace

struct lbm_sim {
  lbm_sim(int nx, int ny, torch::Device device) : lattice(nx, ny, device) {}
  lbm::Lattice lattice;
  torch::Tensor host_velocity;
};

extern "C" {

lbm_sim* lbm_create(int nx, int ny, int gpu) {
  if (nx <= 0 || ny <= 0 || gpu < 0 || gpu >= static_cast<int>(torch::cuda::device_count()))
    return nullptr;
  return new lbm_sim(nx, ny, torch::Device(torch::kCUDA, gpu));
}

void lbm_destroy(lbm_sim* sim) { delete sim; }

lbm_status lbm_set_walls(lbm_sim* sim, const uint8_t* walls) {
  return guarded([&] {
    auto& f = sim->lattice.populations();
    sim->lattice.set_walls(torch::from_blob(const_cast<uint8_t*>(walls), {f.size(1), f.size(2)}, torch::kUInt8));
  });
}

lbm_status lbm_set_force_field(lbm_sim* sim, const float* force) {
  return guarded([&] { sim->lattice.set_force(force); });
}

lbm_status lbm_set_inflow(lbm_sim* sim, const float* profile, int count) {
  return guarded([&] { sim->lattice.set_inflow(profile, count); });
}

lbm_status lbm_step(lbm_sim* sim, int steps) {
  return guarded([&] { sim->lattice.step(steps); });
}

lbm_status lbm_step_driven(lbm_sim* sim, int steps) {
  return guarded([&] { sim->lattice.step_driven(steps); });
}

lbm_status lbm_migrate(lbm_sim* sim, int gpu) {
  return guarded([&] { sim->lattice.migrate(torch::Device(torch::kCUDA, gpu)); });
}

const float* lbm_density(lbm_sim* sim) {
  const auto rho = sim->lattice.density().contiguous();
  const float* out = rho.to(torch::kCPU, torch::kFloat).data_ptr<float>(); // [[device-dangling-data]]
  return out;
}

const float* lbm_velocity(lbm_sim* sim) {
  sim->host_velocity = sim->lattice.velocity().cpu().contiguous();
  return sim->host_velocity.data_ptr<float>();
}

float lbm_probe(lbm_sim* sim, int x, int y) { return sim->lattice.probe(x, y); }

float lbm_drag(lbm_sim* sim) { return sim->lattice.drag(); }

lbm_status lbm_copy_populations(lbm_sim* sim, float* out, size_t count) {
  return guarded([&] {
    const auto f = sim->lattice.populations().contiguous();
    TORCH_CHECK_VALUE(count == static_cast<size_t>(f.numel()), "expected ", f.numel(), " values");
    const auto error = cudaMemcpy(out, f.data_ptr<float>(), count * sizeof(float), cudaMemcpyDeviceToHost);
    TORCH_CHECK(error == cudaSuccess, cudaGetErrorString(error));
  });
}

lbm_status lbm_load_populations(lbm_sim* sim, const float* in, size_t count) {
  return guarded([&] {
    auto& f = sim->lattice.populations();
    TORCH_CHECK_VALUE(count == static_cast<size_t>(f.numel()), "expected ", f.numel(), " values");
    std::memcpy(f.data_ptr<float>(), in, count * sizeof(float)); // [[device-host-access]]
  });
}

lbm_status lbm_add_tracer(lbm_sim* sim, const float* xy, int count) {
  return guarded([&] { sim->lattice.add_tracer(xy, count); });
}

lbm_status lbm_advect(lbm_sim* sim) {
  return guarded([&] { sim->lattice.advect(); });
}

lbm_status lbm_collide_entropic(lbm_sim* sim) {
  return guarded([&] { sim->lattice.collide_entropic(); });
}

const char* lbm_last_error(void) { return last_error.c_str(); }

} // extern "C"

#ifdef DT_RUN
#include "../../shim/driver.h"
static void good(lbm_status s) { TORCH_CHECK(s == LBM_OK, lbm_last_error()); }
static lbm_sim* sim(int gpu = 1) { return lbm_create(16, 8, gpu); }
static void inflow_bad() { auto* s = sim(); std::vector<float> p(8, 0.1f); lbm_set_inflow(s, p.data(), 8); good(lbm_step_driven(s, 2)); }
static void migrate_bad() { auto* s = sim(); good(lbm_migrate(s, 2)); good(lbm_step_driven(s, 1)); }
static void tracer_bad() { auto* s = sim(); float xy[] = {1, 2, 3, 4}; good(lbm_add_tracer(s, xy, 2)); good(lbm_add_tracer(s, xy, 1)); }
static void entropic_bad() { good(lbm_collide_entropic(sim())); }
static void probe_bad() { lbm_probe(sim(), 3, 4); }
static void density_bad() {
  auto* s = sim();
  auto* rho = lbm_density(s);
  for (int i = 0; i < 128; ++i)
    dtl::require(std::abs(rho[i] - 1) < 1e-3, "density");
}
static void load_bad() { auto* s = sim(); std::vector<float> f(9 * 128, 0.1f); good(lbm_load_populations(s, f.data(), f.size())); }
static void step_ok() { auto* s = sim(); std::vector<uint8_t> w(128, 0); w[40] = 1; good(lbm_set_walls(s, w.data())); good(lbm_step(s, 3)); lbm_drag(s); lbm_destroy(s); }
static void force_ok() { auto* s = sim(); std::vector<float> p(128, 0.1f); good(lbm_set_force_field(s, p.data())); good(lbm_step_driven(s, 2)); }
static void advect_ok() { auto* s = sim(); float xy[] = {1, 2, 3, 4}; good(lbm_add_tracer(s, xy, 2)); good(lbm_advect(s)); good(lbm_migrate(s, 2)); good(lbm_advect(s)); good(lbm_step(s, 1)); }
static void copy_ok() { auto* s = sim(); std::vector<float> f(9 * 128); good(lbm_copy_populations(s, f.data(), f.size())); dtl::require(f[5] > 0.1f, "f"); }
static void velocity_ok() { auto* s = sim(); dtl::require(std::abs(lbm_velocity(s)[7]) < 1e-3, "u"); }
static void create_ok() { dtl::require(!lbm_create(16, 8, -1) && !lbm_create(16, 8, 9), "gpu"); lbm_destroy(sim(3)); }
static void argument_ok() { auto* s = sim(); dtl::require(lbm_copy_populations(s, nullptr, 3) == LBM_DEVICE_FAILURE, "status"); lbm_set_inflow(s, nullptr, 0); }
DT_MAIN(inflow_bad, migrate_bad, tracer_bad, entropic_bad, probe_bad, density_bad, load_bad, step_ok, force_ok,
        advect_ok, copy_ok, velocity_ok, create_ok, argument_ok)
#endif
