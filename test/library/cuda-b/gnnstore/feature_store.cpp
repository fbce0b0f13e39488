#include "feature_store.h"

#include <cstring>

namespace gnn {

HostStore::HostStore(torch::Tensor features, torch::Device target)
    : features_(features.to(torch::kCPU, torch::kFloat).contiguous()), target_(target) {}

torch::Tensor HostStore::gather(const torch::Tensor &nodes) {
  return features_.index_select(0, nodes.to(torch::kCPU)).to(target_, /*non_blocking=*/false);
}

torch::Tensor HostStore::gather_rows(const torch::Tensor &nodes) const {
  const auto host = nodes.to(torch::kCPU, torch::kLong);
  const auto ids = host.accessor<int64_t, 1>();
  auto rows = torch::empty({ids.size(0), dim()}, torch::device(torch::kCPU).pinned_memory(target_.is_cuda()));
  auto *out = rows.data_ptr<float>();
  const auto *in = features_.data_ptr<float>();
  for (int64_t i = 0; i < ids.size(0); ++i)
    std::memcpy(out + i * dim(), in + ids[i] * dim(), dim() * sizeof(float));
  return rows.to(target_);
}

void HostStore::update(const torch::Tensor &nodes, const torch::Tensor &rows) {
  TORCH_CHECK(nodes.numel() == rows.size(0) && rows.size(1) == dim());
  const auto ids = nodes.cpu();
  const auto fresh = rows.to(target_);
  auto *out = features_.data_ptr<float>();
  for (int64_t i = 0; i < ids.numel(); ++i)
    std::memcpy(out + ids.data_ptr<int64_t>()[i] * dim(), fresh.data_ptr<float>() + i * dim(), dim() * sizeof(float)); // [[device-host-access]]
}

PinnedStore::PinnedStore(const torch::Tensor &features, torch::Device device)
    : features_(features.to(torch::kFloat).contiguous().pin_memory()), device_(device) {
  TORCH_CHECK(device_.is_cuda(), "PinnedStore: expected a GPU, got ", device_);
}

torch::Tensor PinnedStore::gather(const torch::Tensor &nodes) { return gather_cuda(features_, nodes, device_); }

std::unique_ptr<FeatureStore> make_store(const std::string &kind, torch::Tensor features, torch::Device device) {
  if (kind == "host" || !device.is_cuda())
    return std::make_unique<HostStore>(std::move(features), device);
  if (kind == "pinned")
    return std::make_unique<PinnedStore>(features, device);
  TORCH_CHECK(kind == "cached", "unknown store ", kind);
  const auto hot = features.norm(2, 1).argsort(0, true).slice(0, 0, std::max<int64_t>(1, features.size(0) / 4));
  return std::make_unique<CachedStore>(std::move(features), hot, device);
}

NeighborSampler::NeighborSampler(Graph graph, int64_t fanout, std::optional<torch::Device> device)
    : graph_(std::move(graph)), fanout_(fanout), device_(device) {
  TORCH_CHECK(fanout_ > 0);
  if (device_)
    graph_ = graph_.to(*device_);
}

Block NeighborSampler::sample(const torch::Tensor &seeds) const {
  if (device_)
    return sample_cuda(graph_, seeds.to(*device_), fanout_);
  Block block;
  block.nodes = seeds.cpu();
  const auto ids = block.nodes.accessor<int64_t, 1>(), indptr = graph_.indptr.accessor<int64_t, 1>();
  std::vector<int64_t> counts, neighbors;
  const auto indices = graph_.indices.accessor<int64_t, 1>();
  for (int64_t i = 0; i < ids.size(0); ++i) {
    const int64_t first = indptr[ids[i]], count = std::min(fanout_, indptr[ids[i] + 1] - first);
    counts.push_back(count);
    for (int64_t k = 0; k < count; ++k)
      neighbors.push_back(indices[first + k]);
  }
  block.counts = torch::tensor(counts, torch::kLong);
  block.neighbors = torch::tensor(neighbors, torch::kLong);
  return block;
}

Block NeighborSampler::sample_uniform(const torch::Tensor &seeds) const {
  Block block;
  block.nodes = device_ ? seeds.to(*device_) : seeds;
  const auto first = graph_.indptr.index_select(0, block.nodes);
  const auto degree = graph_.indptr.index_select(0, block.nodes + 1) - first;
  const auto pick = torch::rand({block.nodes.numel(), fanout_});
  const auto offset = (pick * degree.unsqueeze(1)).floor().to(torch::kLong); // [[device-mixed-op]]
  block.neighbors = graph_.indices.index({(first.unsqueeze(1) + offset).flatten()});
  block.counts = torch::full_like(degree, fanout_);
  return block;
}

std::vector<Block> NeighborSampler::sample_hops(const torch::Tensor &seeds, int hops) const {
  std::vector<Block> blocks;
  auto frontier = seeds;
  for (int hop = 0; hop < hops; ++hop) {
    blocks.push_back(sample(frontier));
    frontier = std::get<0>(torch::_unique2(torch::cat({blocks.back().nodes, blocks.back().neighbors})));
  }
  return blocks;
}

torch::Tensor NeighborSampler::degrees(const torch::Tensor &seeds) const {
  const auto nodes = seeds.to(graph_.indptr.device());
  return graph_.indptr.index_select(0, nodes + 1) - graph_.indptr.index_select(0, nodes);
}

std::vector<int64_t> NeighborSampler::neighbors_of(int64_t node) const {
  TORCH_CHECK(node >= 0 && node < graph_.nodes(), "node ", node, " of ", graph_.nodes());
  const int64_t first = graph_.indptr[node].item<int64_t>(), last = graph_.indptr[node + 1].item<int64_t>();
  const int64_t *begin = graph_.indices.slice(0, first, last).to(torch::kCPU).data_ptr<int64_t>(); // [[device-dangling-data]]
  return std::vector<int64_t>(begin, begin + (last - first));
}

torch::Tensor aggregate(const torch::Tensor &rows, const torch::Tensor &counts, const std::string &how) {
  if (rows.is_cuda() && how == "mean")
    return segment_mean(rows.contiguous(), counts.to(rows.device()));
  const auto segment = torch::repeat_interleave(torch::arange(counts.numel(), counts.options()), counts).to(rows.device());
  auto out = torch::zeros({counts.numel(), rows.size(1)}, rows.options());
  out.index_add_(0, segment, rows);
  return how == "mean" ? out / counts.to(out).clamp_min(1).unsqueeze(1) : out;
}

torch::Tensor normalize_by_degree(const torch::Tensor &rows, const Graph &graph) {
  const auto degree = (graph.indptr.slice(0, 1) - graph.indptr.slice(0, 0, -1)).to(rows.options());
  return rows * degree.clamp_min(1).rsqrt().unsqueeze(1);
}

/// Features that were trained on a GPU go back to pinned memory.
torch::Tensor repin(const torch::Tensor &features) {
  if (features.is_cuda())
    return features.cpu().pin_memory();
  return features.is_pinned() ? features : features.pin_memory();
}

torch::Tensor stage(const torch::Tensor &features) {
  auto rows = features.is_cuda() ? features.contiguous() : features.contiguous().cuda();
  const auto scale = rows.abs().amax().clamp_min(1e-6);
  rows = (rows / scale * 127).round().to(torch::kChar);
  return rows.pin_memory(); // [[device-host-access]]
}

} // namespace gnn

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace gnn;
using dtl::gpu;
torch::Tensor nodes(int i = 1) { return torch::tensor({0, 2, 3}, torch::kLong).to(dtl::dev(i)); }
torch::Tensor features() { return torch::rand({5, 4}); }
Graph graph() { return {torch::tensor({0, 2, 3, 5, 6, 8}, torch::kLong), torch::tensor({1, 2, 0, 3, 4, 1, 0, 2}, torch::kLong)}; }
CachedStore cached() { return CachedStore(features(), torch::tensor({0, 3}, torch::kLong), dtl::dev(1)); }
NeighborSampler sampler() { return NeighborSampler(graph(), 2, dtl::dev(1)); }
void host_ok() { HostStore s(features(), dtl::dev(1)); s.gather(nodes()); s.gather_rows(nodes()); }
void host_update_bad() { HostStore s(features(), dtl::dev(1)); s.update(nodes(), torch::ones({3, 4})); }
void pinned_ok() { PinnedStore(features(), dtl::dev(1)).gather(nodes()); }
void cached_ok() { auto s = cached(); s.gather(nodes()); s.hit_rate(nodes()); }
void cached_cold_bad() { cached().gather_cold(nodes()); }
void cached_split_bad() { cached().gather_split(nodes()); }
void make_store_ok() { for (auto kind : {"host", "pinned", "cached"}) make_store(kind, features(), dtl::dev(1))->gather(nodes()); }
void sample_ok() { sampler().sample(nodes()); NeighborSampler(graph(), 2, std::nullopt).sample(nodes()); }
void sample_pinned_ok() { sample_cuda(graph().pinned(), nodes(), 2); }
void sample_uniform_bad() { sampler().sample_uniform(nodes()); }
void hops_ok() { sampler().sample_hops(nodes(), 2); }
void degrees_ok() { sampler().degrees(nodes(0)); }
void neighbors_bad() { auto n = sampler().neighbors_of(2); dtl::require(n.size() == 2 && n[0] == 3 && n[1] == 4, "freed memory was read"); }
void segment_mean_ok() { segment_mean(gpu({4, 3}), torch::full({2}, 2, torch::kLong).to(dtl::dev(1))); }
void segment_max_bad() { segment_max(gpu({4, 3}), torch::full({2}, 2, torch::kLong).to(dtl::dev(1))); }
void aggregate_ok() { aggregate(gpu({4, 3}), torch::full({2}, 2, torch::kLong), "mean"); aggregate(torch::rand({4, 3}), torch::full({2}, 2, torch::kLong), "sum"); }
void normalize_ok() { normalize_by_degree(gpu({5, 3}), graph()); }
void repin_ok() { repin(gpu({5, 3})); repin(torch::rand({5, 3})); }
void stage_bad() { stage(features()); }
} // namespace
DT_MAIN(host_ok, host_update_bad, pinned_ok, cached_ok, cached_cold_bad, cached_split_bad, make_store_ok, sample_ok,
        sample_pinned_ok, sample_uniform_bad, hops_ok, degrees_ok, neighbors_bad, segment_mean_ok, segment_max_bad,
        aggregate_ok, normalize_ok, repin_ok, stage_bad)
#endif
