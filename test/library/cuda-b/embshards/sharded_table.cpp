#include "sharded_table.h"

namespace embshards {

std::vector<torch::Device> all_devices() {
  std::vector<torch::Device> devices;
  for (int i = 0; i < static_cast<int>(torch::cuda::device_count()); ++i)
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(i));
  return devices;
}

/// All but the first GPUs, which are left to the dense part of the model; the rest wraps around.
std::vector<torch::Device> devices_after(int first) {
  const int count = static_cast<int>(torch::cuda::device_count());
  TORCH_CHECK(first < count, "cannot skip ", first, " of ", count, " GPUs");
  std::vector<torch::Device> devices;
  for (int i = first; i < count; ++i)
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(i));
  return devices;
}

StreamSet::StreamSet(const std::vector<torch::Device> &devices) {
  streams_.reserve(devices.size());
  for (size_t i = 0; i < devices.size(); ++i)
    streams_.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, devices[i].index()));
}

StreamSet StreamSet::from_pool(const std::vector<torch::Device> &devices) {
  StreamSet set;
  for (const auto &device : devices) {
    const c10::cuda::CUDAGuard guard(device);
    set.streams_.push_back(c10::cuda::getStreamFromPool());
  }
  return set;
}

void StreamSet::synchronize() const {
  for (const auto &stream : streams_)
    stream.synchronize();
}

ColumnSharded::ColumnSharded(TableSpec spec, std::vector<torch::Device> devices)
    : spec_(std::move(spec)), devices_(std::move(devices)), streams_(devices_) {
  TORCH_CHECK(!devices_.empty(), "table ", spec_.name, " has no devices");
  const auto n = static_cast<int64_t>(devices_.size());
  TORCH_CHECK(spec_.dim % n == 0, "table ", spec_.name, ": ", spec_.dim, " columns over ", n, " devices");
  for (const auto &device : devices_)
    shards_.push_back(torch::randn({spec_.rows, spec_.dim / n}, torch::device(device)) * 0.01);
}

torch::Tensor ColumnSharded::forward(const Bags &bags) {
  std::vector<torch::Tensor> parts;
  const auto main = devices_.front();
  for (size_t i = 0; i < shards_.size(); ++i)
    parts.push_back(pooled_lookup(shards_[i], bags.to(devices_[i]), spec_.pooling).to(main, /*non_blocking=*/true));
  return torch::cat(parts, 1);
}

torch::Tensor ColumnSharded::forward_overlapped(const Bags &bags) {
  std::vector<torch::Tensor> parts(shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i) {
    const c10::cuda::CUDAStreamGuard guard(streams_.at(i));
    parts[i] = pooled_lookup(shards_[i], bags.to(devices_[i]), spec_.pooling);
  }
  streams_.synchronize();
  return torch::cat(parts, 1); // [[device-mixed-op]]
}

torch::Tensor ColumnSharded::row(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < spec_.rows, "row ", index, " of ", spec_.rows);
  std::vector<torch::Tensor> parts;
  for (const auto &shard : shards_)
    parts.push_back(shard[index].cpu());
  return torch::cat(parts);
}

torch::Tensor ColumnSharded::full_weight() const {
  auto weight = torch::empty({spec_.rows, spec_.dim}, torch::device(devices_.back()));
  const auto width = spec_.dim / static_cast<int64_t>(shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i)
    weight.narrow(1, static_cast<int64_t>(i) * width, width).copy_(shards_[i]);
  return weight;
}

void ColumnSharded::set_row(int64_t index, const torch::Tensor &value) {
  const auto pieces = value.chunk(static_cast<int64_t>(shards_.size()));
  for (size_t i = 0; i < shards_.size(); ++i)
    shards_[i][index] = pieces[i];
}

double ColumnSharded::norm() const {
  auto total = torch::zeros({}, torch::kDouble);
  for (const auto &shard : shards_)
    total += shard.to(torch::kDouble).pow(2).sum().item<double>();
  return total.sqrt().item<double>();
}

RowSharded::RowSharded(TableSpec spec, std::vector<torch::Device> devices) : devices_(std::move(devices)), dim_(spec.dim) {
  const auto n = static_cast<int64_t>(devices_.size());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t rows = (spec.rows + n - 1 - i) / n;
    shards_.push_back(torch::randn({rows, dim_}, torch::device(devices_[i])));
    counters_.push_back(torch::zeros({rows}, torch::dtype(torch::kLong).device(devices_[i])));
  }
}

torch::Tensor RowSharded::lookup(const torch::Tensor &indices) {
  const auto n = static_cast<int64_t>(shards_.size());
  auto out = torch::empty({indices.numel(), dim_}, torch::device(indices.device()));
  for (int64_t s = 0; s < n; ++s) {
    const auto where = (indices.remainder(n) == s).nonzero().squeeze(1);
    const auto local = torch::div(indices.index_select(0, where), n, "floor");
    const auto rows = shards_[s].index_select(0, local); // [[device-mixed-op]]
    counters_[s].index_add_(0, local, torch::ones_like(local));
    out.index_copy_(0, where, rows.to(out.device()));
  }
  return out;
}

torch::Tensor RowSharded::lookup_host(const torch::Tensor &indices) {
  const auto n = static_cast<int64_t>(shards_.size());
  const auto host = indices.cpu().to(torch::kLong);
  auto out = torch::empty({host.numel(), dim_}, torch::device(torch::kCPU).pinned_memory(true));
  for (int64_t s = 0; s < n; ++s) {
    const auto where = (host.remainder(n) == s).nonzero().squeeze(1);
    const auto local = torch::div(host.index_select(0, where), n, "floor");
    out.index_put_({where}, shards_[s].index({local}).cpu());
  }
  return out;
}

void RowSharded::accumulate(const torch::Tensor &indices, const torch::Tensor &grad, double lr) {
  const auto n = static_cast<int64_t>(shards_.size());
  for (int64_t s = 0; s < n; ++s) {
    const auto where = (indices.remainder(n) == s).nonzero().squeeze(1);
    sgd_rows(shards_[s], torch::div(indices.index_select(0, where), n, "floor"), grad.index_select(0, where), lr);
  }
}

void RowSharded::accumulate_fused(const torch::Tensor &indices, const torch::Tensor &grad, double lr) {
  const auto n = static_cast<int64_t>(shards_.size());
  for (int64_t s = 0; s < n; ++s) {
    const auto where = (indices.remainder(n) == s).nonzero().squeeze(1);
    const auto local = torch::div(indices.index_select(0, where), n, "floor").to(devices_[s]);
    const auto update = grad.index_select(0, where).mul(-lr);
    shards_[s].index_add_(0, local, update); // [[device-mixed-op]]
  }
}

std::vector<int64_t> RowSharded::histogram(const torch::Tensor &indices) const {
  const auto counts = torch::bincount(indices.remainder(static_cast<int64_t>(shards_.size())).cpu());
  const auto *data = counts.data_ptr<int64_t>();
  return std::vector<int64_t>(data, data + counts.numel());
}

std::vector<int64_t> RowSharded::touched(size_t shard) const {
  std::vector<int64_t> rows;
  const auto counts = counters_.at(shard).accessor<int64_t, 1>();
  for (int64_t i = 0; i < counts.size(0); ++i)
    if (counts[i] > 0) // [[device-host-access]]
      rows.push_back(i * static_cast<int64_t>(shards_.size()) + static_cast<int64_t>(shard));
  return rows;
}

std::vector<int64_t> RowSharded::touched_host(size_t shard) const {
  const auto found = counters_.at(shard).nonzero().squeeze(1).cpu();
  const auto view = found.accessor<int64_t, 1>();
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < view.size(0); ++i)
    rows.push_back(view[i] * static_cast<int64_t>(shards_.size()) + static_cast<int64_t>(shard));
  return rows;
}

} // namespace embshards

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace embshards;
using dtl::gpu;
TableSpec spec{"users", 12, 8, Pooling::kMean};
Bags bags(int i) { return Bags{torch::tensor({0, 1, 5, 2}, torch::kLong), torch::tensor({0, 2}, torch::kLong)}.to(dtl::dev(i)); }
torch::Tensor ids(int i = 0) { return torch::tensor({0, 1, 5, 2}, torch::kLong).to(dtl::dev(i)); }
void devices_ok() { for (auto d : all_devices()) torch::zeros({1}, d); for (auto d : devices_after(1)) torch::zeros({1}, d); }
void streams_ok() { auto s = StreamSet::from_pool(all_devices()); dtl::require(s.at(2).device_index() == 2, "stream"); }
void forward_ok() { ColumnSharded t(spec, all_devices()); t.forward(bags(0)); }
void forward_overlapped_bad() { ColumnSharded t(spec, all_devices()); t.forward_overlapped(bags(0)); }
void row_ok() { ColumnSharded t(spec, all_devices()); t.row(3); t.set_row(3, torch::ones({8})); }
void full_weight_ok() { ColumnSharded t(spec, all_devices()); t.full_weight(); }
void norm_ok() { ColumnSharded t(spec, all_devices()); t.norm(); }
void lookup_bad() { RowSharded t(spec, all_devices()); t.lookup(ids()); }
void lookup_host_ok() { RowSharded t(spec, all_devices()); t.lookup_host(ids()); }
void accumulate_ok() { RowSharded t(spec, all_devices()); t.accumulate(ids(), gpu({4, 8}, 0), .1); }
void accumulate_fused_bad() { RowSharded t(spec, all_devices()); t.accumulate_fused(ids(), gpu({4, 8}, 0), .1); }
void histogram_ok() { RowSharded t(spec, all_devices()); t.histogram(ids()); }
void touched_bad() { RowSharded t(spec, all_devices()); t.touched(1); }
void touched_host_ok() { RowSharded t(spec, all_devices()); t.touched_host(1); }
void pooled_ok() { pooled_lookup(gpu({12, 8}), bags(1), Pooling::kSum); }
void pooled_out_bad() { auto o = gpu({2, 8}); pooled_lookup_out(gpu({12, 8}), bags(1), o, c10::cuda::getDefaultCUDAStream(1)); }
void sgd_rows_ok() { sgd_rows(gpu({12, 8}), ids(0), gpu({4, 8}, 0), .1); }
void warm_up_bad() { warm_up(gpu({12, 8})); }
} // namespace
DT_MAIN(devices_ok, streams_ok, forward_ok, forward_overlapped_bad, row_ok, full_weight_ok, norm_ok, lookup_bad,
        lookup_host_ok, accumulate_ok, accumulate_fused_bad, histogram_ok, touched_bad, touched_host_ok, pooled_ok,
        pooled_out_bad, sgd_rows_ok, warm_up_bad)
#endif
