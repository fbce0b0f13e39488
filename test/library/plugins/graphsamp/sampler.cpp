#include "sampler.h"

#include <algorithm>
#include <random>

namespace gs {

Csc Csc::from_coo(const Tensor& row, const Tensor& col, int64_t nodes, optional<Tensor> weights) {
  const auto order = col.argsort();
  auto indptr = torch::zeros({nodes + 1}, col.options());
  indptr.slice(0, 1).copy_(torch::bincount(col, {}, nodes).cumsum(0));
  Csc graph{indptr, row.index_select(0, order), c10::nullopt};
  if (weights)
    graph.weights = weights->index_select(0, order);
  return graph;
}

Csc Csc::to(torch::Device device) const { return {indptr.to(device), indices.to(device), weights}; }

Csc& Csc::pin() {
  if (device().is_cpu()) {
    indptr = indptr.pin_memory();
    indices = indices.pin_memory();
  }
  return *this;
}

Block Block::to(const torch::Device& device) const {
  return {row.to(device), col.to(device), edge, num_src, num_dst};
}

MiniBatch MiniBatch::to(const torch::Device& device) const {
  MiniBatch moved = *this;
  std::transform(blocks.begin(), blocks.end(), moved.blocks.begin(), [&](const Block& b) { return b.to(device); });
  moved.input_nodes = input_nodes.to(device);
  moved.seeds = seeds.to(device);
  for (auto& [name, tensor] : moved.extra)
    tensor = tensor.to(device);
  return moved;
}

std::pair<Tensor, Tensor> NeighborSampler::sample_cpu(const Tensor& seeds, int64_t fanout) const {
  std::vector<int64_t> rows, cols;
  const auto indptr = graph_.indptr.accessor<int64_t, 1>();
  const auto indices = graph_.indices.accessor<int64_t, 1>();
  const auto* seed = seeds.data_ptr<int64_t>();
  for (int64_t i = 0; i < seeds.numel(); ++i)
    for (int64_t e = indptr[seed[i]]; e < std::min(indptr[seed[i]] + fanout, indptr[seed[i] + 1]); ++e) {
      rows.push_back(indices[e]);
      cols.push_back(i);
    }
  return {torch::tensor(rows, torch::kLong), torch::tensor(cols, torch::kLong)};
}

MiniBatch NeighborSampler::sample(const Tensor& seeds) const {
  MiniBatch batch;
  batch.seeds = seeds;
  auto frontier = seeds.cpu();
  for (auto fanout : fanouts_) {
    auto [row, col] = sample_cpu(frontier, fanout);
    Block block{row, col, torch::arange(row.numel()), 0, frontier.numel()};
    frontier = torch::cat({frontier, row});
    block.num_src = frontier.numel();
    batch.blocks.insert(batch.blocks.begin(), std::move(block));
  }
  batch.input_nodes = frontier;
  return batch;
}

Tensor NeighborSampler::edge_weights_of(const Block& block) const {
  TORCH_CHECK(graph_.weights.has_value(), "the graph has no weights");
  return graph_.weights->index_select(0, block.edge);
}

Tensor NeighborSampler::negatives(int64_t count) const {
  const auto degree = graph_.indptr.diff().to(torch::kFloat).pow(0.75);
  return degree.multinomial(count, true);
}

Tensor NeighborSampler::negatives_of(const Tensor& scores, int64_t count) const {
  const auto degree = graph_.indptr.cpu().diff();
  return scores.gather(0, degree.to(torch::kFloat).multinomial(count, true)); // [[device-mixed-op]]
}

FeatureCache::FeatureCache(Tensor table, torch::Device device, int64_t hot)
    : table_(std::move(table)), slot_(torch::full({table_.size(0)}, -1, torch::kLong)), device_(device), hot_(hot) {}

void FeatureCache::warm(const Tensor& by_degree) {
  const auto top = by_degree.cpu().argsort(0, /*descending=*/true).slice(0, 0, hot_);
  rows_ = table_.index_select(0, top).to(device_);
  slot_.index_copy_(0, top, torch::arange(hot_));
}

Tensor FeatureCache::fetch(const Tensor& nodes) const {
  const auto wanted = nodes.cpu();
  const auto slots = slot_.index_select(0, wanted);
  auto out = table_.index_select(0, wanted).to(device_);
  const auto hit = slots.ge(0).nonzero().flatten();
  if (hit.numel() > 0)
    out.index_put_({hit}, rows_.index({slots.index({hit})}));
  return out;
}

Tensor FeatureCache::fetch_naive(const Tensor& nodes) const {
  const auto hot = slot_.index_select(0, nodes.to(slot_.device()));
  const auto kept = rows_.index({hot.clamp_min(0)});
  return torch::where(hot.ge(0).unsqueeze(1).to(device_), kept, table_.index_select(0, nodes.to(torch::kCPU))); // [[device-mixed-op]]
}

double FeatureCache::hit_rate(const Tensor& nodes) const {
  return slot_.index({nodes.to(slot_.device())}).ge(0).to(torch::kFloat).mean().item<double>();
}

void History::push(const Tensor& nodes, const Tensor& values) {
  table_.index_copy_(0, nodes.cpu(), values.detach().cpu());
}

Tensor History::pull(const Tensor& nodes, const torch::Device& device) const {
  return table_.index_select(0, nodes.to(torch::kCPU)).to(device, /*non_blocking=*/true);
}

void History::tick(const Tensor& nodes) {
  age_ += 1;
  age_.index_fill_(0, nodes.to(age_.device()), 0);
}

SageConvImpl::SageConvImpl(int64_t in, int64_t out) {
  self_ = register_module("self", torch::nn::Linear(in, out));
  neighbor_ = register_module("neighbor", torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false)));
}

Tensor SageConvImpl::forward(const Tensor& x, const Block& block) {
  auto sum = torch::zeros({block.num_dst, x.size(1)}, x.options());
  sum.index_add_(0, block.col, x.index_select(0, block.row));
  return self_(x.slice(0, 0, block.num_dst)) + neighbor_(sum);
}

Tensor SageConvImpl::forward_weighted(const Tensor& x, const Block& block, const Tensor& weights) {
  auto sum = torch::zeros({block.num_dst, x.size(1)}, x.options());
  const auto w = weights.index_select(0, block.edge); // [[device-mixed-op]]
  sum.index_add_(0, block.col, x.index_select(0, block.row) * w.unsqueeze(1));
  return self_(x.slice(0, 0, block.num_dst)) + neighbor_(sum);
}

double LinkTrainer::step(const MiniBatch& batch, const Tensor& features) {
  auto moved = batch.to(device_);
  if (hook_)
    moved = hook_(std::move(moved));
  const auto x = features.to(device_).index_select(0, moved.input_nodes.slice(0, 0, moved.blocks[0].num_src));
  const auto out = conv_->forward(x, moved.blocks[0]);
  const auto score = (out * out.roll(1, 0)).sum(1);
  const auto loss = torch::binary_cross_entropy_with_logits(score, torch::ones_like(score));
  loss.backward();
  return loss.item<double>();
}

double LinkTrainer::step_pairs(const MiniBatch& batch, const Tensor& features, const std::vector<float>& labels) {
  const auto moved = batch.to(device_);
  const auto x = features.to(device_).index_select(0, moved.input_nodes);
  const auto out = conv_->forward(x, moved.blocks[0]);
  const auto target = torch::tensor(labels).slice(0, 0, out.size(0));
  const auto loss = torch::binary_cross_entropy_with_logits(out.sum(1), target); // [[device-loss-input]]
  loss.backward();
  return loss.item<double>();
}

// The neighbours that an epoch starts with, where the graph lies on a GPU.
std::tuple<Tensor, Tensor> first_hop(const NeighborSampler& sampler, const Tensor& seeds, int64_t fanout) {
  const auto& graph = sampler.graph();
  return sample_neighbors_cuda(graph.indptr, graph.indices, seeds.to(graph.device()), fanout, graph.weights);
}

// Weighted degrees of what was just moved; the weights were left behind.
Tensor weighted_degrees(const Csc& host, torch::Device device) {
  const auto graph = host.to(device);
  const auto counts = graph.indptr.diff();
  const auto owner = torch::repeat_interleave(torch::arange(counts.numel(), counts.options()), counts);
  auto total = torch::zeros({counts.numel()}, torch::TensorOptions(torch::kFloat).device(graph.device()));
  return total.scatter_add_(0, owner, *graph.weights); // [[device-mixed-op]]
}

} // namespace gs

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace gs;
static Csc graph(bool weights = true) {
  return Csc::from_coo(torch::tensor({1, 2, 0, 3}, torch::kLong), torch::tensor({0, 1, 2, 3}, torch::kLong), 4, weights ? optional<Tensor>(torch::rand({4})) : c10::nullopt);
}
static NeighborSampler sampler() { return {graph(), {2}}; }
static MiniBatch batch() { return sampler().sample(torch::arange(3)); }
static void hop_bad() { NeighborSampler s(graph(false).to(dtl::dev(1)), {2}); first_hop(s, torch::arange(3), 2); }
static void walk_bad() { random_walk_cuda(graph().to(dtl::dev(1)), torch::arange(3).to(dtl::dev(1)), 3); }
static void negative_bad() { NeighborSampler s(graph(false).to(dtl::dev(1)), {2}); s.negatives_of(dtl::gpu({4}), 2); }
static void naive_bad() { FeatureCache c(torch::rand({4, 3}), dtl::dev(1), 2); c.warm(torch::rand({4})); c.fetch_naive(torch::arange(3)); }
static void edge_bad() { SageConv c(3, 2); c->to(dtl::dev(1)); auto b = batch().to(dtl::dev(1)); c->forward_weighted(dtl::gpu({b.blocks[0].num_src, 3}), b.blocks[0], dtl::gpu({8})); }
static void pairs_bad() { LinkTrainer t(SageConv(3, 2), dtl::dev(1)); t.step_pairs(batch(), torch::rand({4, 3}), {1, 0, 1}); }
static void weighted_bad() { weighted_degrees(graph(), dtl::dev(1)); }
static void weighted_ok() { weighted_degrees(graph(), torch::kCPU); }
static void step_ok() {
  LinkTrainer t(SageConv(3, 2), dtl::dev(1));
  t.on_batch([](MiniBatch b) { b.seeds = b.seeds + 0; return b; });
  t.step(batch(), torch::rand({4, 3}));
}
static void hop_ok() {
  auto g = graph().to(dtl::dev(1));
  g.weights = g.weights->to(dtl::dev(1));
  first_hop(NeighborSampler(g, {2}), torch::arange(3), 2);
  degrees_cuda(g);
  auto c = c10::cuda::CUDAGuard(dtl::dev(2));
  unique_cuda(dtl::longs({4}));
}
static void uva_ok() { gather_uva(torch::rand({5, 2}), dtl::longs({3})); gather_uva(dtl::gpu({5, 2}), dtl::longs({3})); }
static void cache_ok() {
  FeatureCache c(torch::rand({4, 3}), dtl::dev(1), 2);
  c.warm(dtl::gpu({4}));
  c.fetch(dtl::longs({3}));
  c.hit_rate(dtl::longs({3}));
  History h(4, 3);
  h.push(dtl::longs({1}), dtl::gpu({1, 3}));
  h.pull(dtl::longs({1}), dtl::dev(1));
  h.tick(dtl::longs({1}));
}
static void sampler_ok() { auto s = sampler(); s.edge_weights_of(batch().blocks[0]); s.negatives(3); graph().pin(); NeighborSampler g(graph().to(dtl::dev(1)), {2}); g.negatives(3); }
DT_MAIN(hop_bad, walk_bad, negative_bad, naive_bad, edge_bad, pairs_bad, weighted_bad, weighted_ok, step_ok, hop_ok, uva_ok, cache_ok, sampler_ok)
#endif
