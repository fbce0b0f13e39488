#include "domain.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <array>

namespace halo {
namespace {
constexpr int kUp = 17, kDown = 18;
}

Slab::Slab(const Topology &topology, int64_t rows, int64_t cols, torch::Device device)
    : topology_(topology), rows_(rows), cols_(cols), device_(device) {
  TORCH_CHECK(rows >= 2, "a slab has at least two rows, got ", rows);
  field_ = torch::zeros({rows + 2, cols}, torch::device(device_));
  send_ = torch::empty({2, cols}, torch::device(torch::kCPU).pinned_memory(device_.is_cuda()));
  recv_ = torch::empty({2, cols}, torch::device(torch::kCPU).pinned_memory(device_.is_cuda()));
}

void Slab::exchange() {
  send_[0].copy_(field_[1]);
  send_[1].copy_(field_[rows_]);
  float *out = send_.data_ptr<float>(), *in = recv_.data_ptr<float>();
  const int count = static_cast<int>(cols_);
  MPI_Sendrecv(out, count, MPI_FLOAT, topology_.lower, kDown, in + cols_, count, MPI_FLOAT, topology_.upper, kDown,
               topology_.comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(out + cols_, count, MPI_FLOAT, topology_.upper, kUp, in, count, MPI_FLOAT, topology_.lower, kUp,
               topology_.comm, MPI_STATUS_IGNORE);
  field_[0].copy_(recv_[0]);
  field_[rows_ + 1].copy_(recv_[1]);
}

void Slab::exchange_direct() {
  const auto lower = field_[1].contiguous();
  auto ghost = torch::empty_like(lower);
  const int count = static_cast<int>(cols_);
  MPI_Sendrecv(lower.data_ptr<float>(), count, MPI_FLOAT, topology_.lower, kDown, ghost.data_ptr<float>(), count, // [[device-host-access]]
               MPI_FLOAT, topology_.upper, kDown, topology_.comm, MPI_STATUS_IGNORE);
  field_[rows_ + 1].copy_(ghost);
}

void Slab::exchange_buffered() {
  auto lower = field_[1].to(torch::kCPU).contiguous(), upper = field_[rows_].to(torch::kCPU).contiguous();
  auto from_lower = torch::empty({cols_}), from_upper = torch::empty({cols_});
  const int count = static_cast<int>(cols_);
  std::array<MPI_Request, 4> requests;
  MPI_Irecv(from_lower.data_ptr<float>(), count, MPI_FLOAT, topology_.lower, kUp, topology_.comm, &requests[0]);
  MPI_Irecv(from_upper.data_ptr<float>(), count, MPI_FLOAT, topology_.upper, kDown, topology_.comm, &requests[1]);
  MPI_Isend(lower.data_ptr<float>(), count, MPI_FLOAT, topology_.lower, kDown, topology_.comm, &requests[2]);
  MPI_Isend(upper.data_ptr<float>(), count, MPI_FLOAT, topology_.upper, kUp, topology_.comm, &requests[3]);
  MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
  auto padded = torch::cat({from_lower.unsqueeze(0), field_.slice(0, 1, rows_ + 1), from_upper.unsqueeze(0)}); // [[device-mixed-op]]
  field_.copy_(padded);
}

void Slab::step(double dt) {
  exchange();
  auto inner = field_.slice(0, 1, rows_ + 1);
  auto laplacian = field_.slice(0, 0, rows_) + field_.slice(0, 2, rows_ + 2) - 2 * inner;
  inner.add_(laplacian, dt);
}

double Slab::residual() const {
  auto local = (field_.slice(0, 1, rows_ + 1) - field_.slice(0, 0, rows_)).pow(2).sum().reshape({1}).to(torch::kDouble);
  MPI_Allreduce(MPI_IN_PLACE, local.data_ptr<double>(), 1, MPI_DOUBLE, MPI_SUM, topology_.comm); // [[device-host-access]]
  return local.sqrt().item<double>();
}

double Slab::energy() const {
  const double local = field_.slice(0, 1, rows_ + 1).pow(2).sum().item<double>();
  double total = 0;
  MPI_Allreduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, topology_.comm);
  return total;
}

double Slab::max_speed() const {
  auto speed = field_.abs().max().to(torch::kDouble).reshape({1}).cpu();
  MPI_Allreduce(MPI_IN_PLACE, speed.data_ptr<double>(), 1, MPI_DOUBLE, MPI_MAX, topology_.comm);
  return speed.item<double>();
}

torch::Tensor Slab::gather(int root) const {
  const auto local = field_.slice(0, 1, rows_ + 1).cpu().contiguous();
  torch::Tensor all;
  if (topology_.rank == root)
    all = torch::empty({topology_.size * rows_, cols_});
  MPI_Gather(local.data_ptr<float>(), static_cast<int>(local.numel()), MPI_FLOAT,
             all.defined() ? all.data_ptr<float>() : nullptr, static_cast<int>(local.numel()), MPI_FLOAT, root,
             topology_.comm);
  return all;
}

void Slab::add_sources(const std::vector<int64_t> &rows, double strength) {
  const auto index = torch::tensor(rows, torch::kLong);
  field_.index_put_({index + 1}, torch::tensor(strength), /*accumulate=*/false);
}

void Slab::damp_borders(int64_t width) {
  auto profile = torch::ones({cols_}, torch::device(device_));
  profile.slice(0, 0, width) = torch::linspace(0, 1, width);
  profile.slice(0, cols_ - width, cols_).copy_(torch::linspace(1, 0, width));
  field_.mul_(profile);
}

} // namespace halo

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace halo;
template <typename F> void with(F f) {
  dtl::ranks(2, [&](int) { auto t = Topology::discover(MPI_COMM_WORLD); Slab s(t, 4, 8, pick_device(t)); f(s); });
}
void pick_device_ok() { dtl::ranks(2, [&](int r) { dtl::require(pick_device(Topology::discover(MPI_COMM_WORLD)).index() == r, "device"); }); }
void last_device_bad() { torch::zeros({2}, last_device()); }
void device_for_ok() { Topology t; t.local_rank = 3; torch::zeros({2}, device_for(t, 1)); }
void open_bad() { dtl::ranks(2, [&](int) { Resources r; r.open(Topology::discover(MPI_COMM_WORLD), 1); auto f = torch::zeros({4}, r.device); fill_noise(r, f); r.close(); }); }
void open_reproducible_ok() { dtl::ranks(2, [&](int) { Resources r; r.open_reproducible(Topology::discover(MPI_COMM_WORLD)); auto f = torch::zeros({4}, r.device); fill_noise(r, f); r.close(); }); }
void make_initial_bad() { dtl::ranks(2, [&](int r) { auto t = Topology::discover(MPI_COMM_WORLD); pick_device(t); dtl::onDevice(make_initial(t, 4, 4), r, "field of the rank"); }); }
void make_initial_on_ok() { dtl::ranks(2, [&](int r) { auto t = Topology::discover(MPI_COMM_WORLD); dtl::onDevice(make_initial_on(t, 4, 4, pick_device(t)), r, "field"); }); }
void exchange_ok() { with([](Slab &s) { s.exchange(); }); }
void exchange_direct_bad() { with([](Slab &s) { s.exchange_direct(); }); }
void exchange_buffered_bad() { with([](Slab &s) { s.exchange_buffered(); }); }
void step_ok() { with([](Slab &s) { s.step(.1); }); }
void residual_bad() { with([](Slab &s) { s.residual(); }); }
void energy_ok() { with([](Slab &s) { s.energy(); s.max_speed(); }); }
void gather_ok() { with([](Slab &s) { s.gather(0); }); }
void add_sources_ok() { with([](Slab &s) { s.add_sources({0, 2}, 1); }); }
void damp_borders_ok() { with([](Slab &s) { s.damp_borders(2); }); }
} // namespace
DT_MAIN(pick_device_ok, last_device_bad, device_for_ok, open_bad, open_reproducible_ok, make_initial_bad,
        make_initial_on_ok, exchange_ok, exchange_direct_bad, exchange_buffered_bad, step_ok, residual_bad, energy_ok, gather_ok,
        add_sources_ok, damp_borders_ok)
#endif
