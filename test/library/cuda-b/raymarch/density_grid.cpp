#include "raymarch.h"

namespace raymarch {

DensityGrid::DensityGrid(GridSpec spec, torch::Device device) : spec_(spec), device_(device) {
  TORCH_CHECK(device_.is_cuda(), "DensityGrid: expected a GPU, got ", device_);
  grid_ = torch::zeros({spec_.cascades * spec_.cells()}, torch::device(device_));
  bitfield_ = packbits(grid_, 0.5);
  offsets_ = torch::tensor({-1.f, -1.f, -1.f});
}

void DensityGrid::update(const torch::Tensor &densities, double decay) {
  const auto fresh = densities.to(device_, torch::kFloat).view_as(grid_);
  const auto visible = grid_ >= 0;
  grid_ = torch::where(visible, torch::max(grid_ * decay, fresh), grid_);
  bitfield_ = packbits(grid_.contiguous(), std::min(0.01, mean_density()));
}

void DensityGrid::decay_border() {
  auto cube = grid_.view({spec_.cascades, spec_.resolution, spec_.resolution, spec_.resolution});
  const auto fade = torch::full({spec_.resolution}, 0.5f);
  cube.select(1, 0).mul_(fade); // [[device-mixed-op]]
  cube.select(1, spec_.resolution - 1).mul_(0.5);
}

double DensityGrid::occupancy() const {
  return (grid_ > 0.01).to(torch::kFloat).mean().item<double>();
}

double DensityGrid::mean_density() const {
  const auto bound = torch::scalar_tensor(0.0);
  return torch::max(grid_.clamp_min(0).mean().cpu(), bound).item<double>();
}

std::vector<int64_t> DensityGrid::occupied_cells(int64_t limit) const {
  const auto cells = (grid_ > 0.01).nonzero().flatten().slice(0, 0, limit).contiguous();
  const int64_t *data = cells.data_ptr<int64_t>();
  return std::vector<int64_t>(data, data + cells.numel()); // [[device-host-access]]
}

torch::Tensor DensityGrid::sample_cells(int64_t count) const {
  const auto picked = torch::randint(grid_.numel(), {count}, torch::kLong);
  return grid_.index({picked});
}

torch::Tensor DensityGrid::world_centers(int64_t count) const {
  const auto index = torch::arange(count, torch::dtype(torch::kLong).device(device_));
  const auto x = index.remainder(spec_.resolution), y = torch::div(index, spec_.resolution, "floor").remainder(spec_.resolution);
  const auto z = torch::div(index, spec_.resolution * spec_.resolution, "floor");
  const auto cell = torch::stack({x, y, z}, 1).to(torch::kFloat) * (2.0 / spec_.resolution);
  return (cell + offsets_) * spec_.bound; // [[device-mixed-op]]
}

torch::Tensor background_blend(const torch::Tensor &image, const torch::Tensor &weights) {
  const auto white = torch::ones({3}, image.options());
  return image + (1 - weights.unsqueeze(-1)) * white;
}

torch::Tensor to_srgb(const torch::Tensor &image) {
  const auto low = image * 12.92;
  const auto high = image.clamp_min(1e-6).pow(1 / 2.4) * 1.055 - 0.055;
  return torch::where(image <= torch::tensor(0.0031308), low, high);
}

} // namespace raymarch

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace raymarch;
using dtl::gpu;
torch::Tensor bits() { return torch::ones({64}, torch::dtype(torch::kByte).device(dtl::dev(1))); }
DensityGrid grid() { return DensityGrid({}, dtl::dev(1)); }
void near_far_bad() { near_far_from_aabb(gpu({5, 3}), gpu({5, 3}), torch::tensor({-1.f, -1.f, -1.f, 1.f, 1.f, 1.f}), .2); }
void packbits_ok() { packbits(gpu({64}), .5); }
void march_train_ok() { march_rays_train(gpu({5, 3}), gpu({5, 3}), bits(), 8); }
void march_rays_bad() { auto o = gpu({40, 3}); march_rays(gpu({5, 3}), gpu({5, 3}), bits(), 8, o); }
void compact_bad() { auto o = dtl::ints({5}); compact_rays(dtl::ints({5}), o); }
void composite_bad() { CompositeRays::apply(gpu({9}).requires_grad_(), gpu({9, 3}).requires_grad_(), dtl::ints({4, 2})).sum().backward(); }
void composite_forward_ok() { CompositeRays::apply(gpu({9}), gpu({9, 3}), dtl::ints({4, 2})); }
void sh_ok() { SphericalHarmonics::apply(gpu({4, 3}).requires_grad_(), 2).sum().backward(); SphericalHarmonics::apply(gpu({4, 3}), 2); }
void workspace_ok() { Workspace::instance().get(dtl::dev(1), 8); dtl::onDevice(Workspace::instance().get(dtl::dev(2), 8), 2, "workspace"); }
void update_ok() { grid().update(torch::rand({4096}), .95); }
void decay_border_bad() { grid().decay_border(); }
void occupancy_ok() { grid().occupancy(); grid().mean_density(); }
void occupied_bad() { auto g = grid(); g.update(torch::rand({4096}), .95); g.occupied_cells(4); }
void sample_ok() { grid().sample_cells(8); }
void centers_bad() { grid().world_centers(8); }
void background_ok() { background_blend(gpu({4, 3}), gpu({4})); }
void srgb_ok() { to_srgb(gpu({4, 3})); }
} // namespace
DT_MAIN(near_far_bad, packbits_ok, march_train_ok, march_rays_bad, compact_bad, composite_bad, composite_forward_ok, sh_ok,
        workspace_ok, update_ok, decay_border_bad, occupancy_ok, occupied_bad, sample_ok, centers_bad, background_ok, srgb_ok)
#endif
