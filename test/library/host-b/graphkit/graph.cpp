#include "graph.h"

#include <numeric>
#include <random>

namespace graphkit {

Csr Csr::fromEdges(const torch::Tensor &edges, int64_t nodes) {
  TORCH_CHECK(edges.dim() == 2 && edges.size(0) == 2, "edges must be 2 x E");
  const auto host = edges.to(torch::kCPU, torch::kLong);
  const auto order = host[0].argsort();
  const auto sources = host[0].index_select(0, order);
  const auto counts = torch::bincount(sources, {}, nodes);
  Csr csr;
  csr.offsets = torch::cat({torch::zeros({1}, torch::kLong), counts.cumsum(0)});
  csr.columns = host[1].index_select(0, order).contiguous();
  csr.weights = torch::ones({csr.columns.numel()});
  return csr;
}

void Subgraph::to(torch::Device device) {
  nodes_ = nodes_.to(device);
  sources_ = sources_.to(device);
  targets_ = targets_.to(device);
  weights_ = weights_.to(device);
  if (features_.defined())
    features_ = features_.to(device);
  if (labels_.defined())
    labels_ = labels_.to(device);
}

torch::Tensor Subgraph::aggregate(const torch::Tensor &values) const {
  const auto messages = values.index_select(0, sources_) * weights_.unsqueeze(1);
  return torch::zeros({size(), values.size(1)}, values.options()).index_add_(0, targets_, messages);
}

torch::Tensor Subgraph::meanAggregate(const torch::Tensor &values) const {
  const auto sum = aggregate(values);
  return sum / degrees_.clamp_min(1).unsqueeze(1); // [[device-mixed-op]]
}

torch::Tensor Subgraph::normalizedWeights() const {
  auto sums = torch::zeros({size()}, weights_.options());
  sums.index_add_(0, targets_, weights_);
  return weights_ / sums.index_select(0, targets_).clamp_min(1e-6);
}

torch::Tensor Subgraph::selfLoops() const {
  const auto loop = torch::arange(size(), torch::TensorOptions().dtype(torch::kLong).device(nodes_.device()));
  return torch::stack({torch::cat({sources_, loop}), torch::cat({targets_, loop})});
}

Subgraph NeighborSampler::sample(const torch::Tensor &seeds) const {
  const auto host = seeds.to(torch::kCPU, torch::kLong).contiguous();
  const int64_t *offset = graph_.offsets.data_ptr<int64_t>();
  const int64_t *column = graph_.columns.data_ptr<int64_t>();
  std::vector<int64_t> nodes(host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel());
  std::unordered_map<int64_t, int64_t> local;
  for (size_t i = 0; i < nodes.size(); ++i)
    local.emplace(nodes[i], static_cast<int64_t>(i));
  std::vector<int64_t> sources, targets;
  size_t begin = 0;
  for (const int64_t fanout : options_.fanout) {
    const size_t end = nodes.size();
    for (size_t i = begin; i < end; ++i) {
      const int64_t node = nodes[i];
      const int64_t count = std::min(fanout, offset[node + 1] - offset[node]);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t neighbor = column[offset[node] + k];
        const auto entry = local.emplace(neighbor, static_cast<int64_t>(nodes.size()));
        if (entry.second)
          nodes.push_back(neighbor);
        sources.push_back(entry.first->second);
        targets.push_back(static_cast<int64_t>(i));
      }
    }
    begin = end;
  }
  const auto target = torch::tensor(targets, torch::kLong);
  const auto degrees = torch::bincount(target, {}, static_cast<int64_t>(nodes.size())).to(torch::kFloat32);
  return Subgraph(torch::tensor(nodes, torch::kLong), torch::tensor(sources, torch::kLong), target,
                  torch::ones({static_cast<int64_t>(sources.size())}), degrees);
}

torch::Tensor NeighborSampler::randomWalk(const torch::Tensor &starts, int64_t length) const {
  auto current = starts.cpu();
  std::vector<torch::Tensor> steps{current};
  for (int64_t i = 0; i < length; ++i) {
    const auto first = graph_.offsets.index_select(0, current), last = graph_.offsets.index_select(0, current + 1);
    const auto pick = first + (torch::rand({current.numel()}) * (last - first)).to(torch::kLong);
    current = torch::where(last > first, graph_.columns.index_select(0, pick.clamp_max(graph_.edges() - 1)), current);
    steps.push_back(current);
  }
  return torch::stack(steps, 1).to(starts.device());
}

std::vector<int64_t> NeighborSampler::degreesOf(const torch::Tensor &nodes) const {
  const auto index = nodes.cpu();
  const auto degrees = graph_.offsets.index_select(0, index + 1) - graph_.offsets.index_select(0, index);
  return {degrees.data_ptr<int64_t>(), degrees.data_ptr<int64_t>() + degrees.numel()};
}

FeatureStore::FeatureStore(torch::Tensor features, torch::Device device)
    : features_(features.to(torch::kCPU).contiguous()), device_(device) {
  mean_ = features_.mean(0);
  deviation_ = features_.std(0).clamp_min(1e-6);
}

void FeatureStore::pinHot(const torch::Tensor &hot) {
  const auto index = hot.to(torch::kCPU);
  hotRows_ = features_.index_select(0, index).to(device_);
  position_ = torch::full({features_.size(0)}, -1, torch::kLong);
  position_.index_put_({index}, torch::arange(index.numel()));
}

torch::Tensor FeatureStore::gather(const torch::Tensor &nodes) const {
  return features_.index_select(0, nodes.to(features_.device())).to(device_);
}

torch::Tensor FeatureStore::gatherHot(const torch::Tensor &nodes) const {
  TORCH_CHECK(position_.defined(), "pinHot() first");
  const auto where = position_.index_select(0, nodes.to(torch::kCPU));
  return hotRows_.index_select(0, where.clamp_min(0)); // [[device-mixed-op]]
}

torch::Tensor FeatureStore::gatherMixed(const torch::Tensor &nodes) const {
  TORCH_CHECK(position_.defined(), "pinHot() first");
  const auto index = nodes.to(torch::kCPU);
  const auto where = position_.index_select(0, index);
  const auto cold = where.lt(0).nonzero().squeeze(1), hot = where.ge(0).nonzero().squeeze(1);
  auto rows = torch::empty({index.numel(), features_.size(1)}, torch::TensorOptions().device(device_));
  rows.index_put_({hot.to(device_)}, hotRows_.index({where.index_select(0, hot)}));
  rows.index_put_({cold.to(device_)}, features_.index_select(0, index.index_select(0, cold)).to(device_));
  return rows;
}

torch::Tensor FeatureStore::standardize(const torch::Tensor &rows) const {
  const auto x = rows.to(device_);
  return (x - mean_) / deviation_.to(x.device()); // [[device-mixed-op]]
}

void FeatureStore::write(const torch::Tensor &nodes, const torch::Tensor &rows) {
  features_.index_copy_(0, nodes.cpu(), rows.detach().cpu());
}

float FeatureStore::at(int64_t node, int64_t column) const {
  return features_.accessor<float, 2>()[node][column];
}

} // namespace graphkit
