#pragma once

#include <torch/torch.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace graphkit {

// Compressed rows: the neighbours of node i are columns[offsets[i] .. offsets[i + 1]).
struct Csr {
  torch::Tensor offsets;
  torch::Tensor columns;
  torch::Tensor weights;

  int64_t nodes() const { return offsets.numel() - 1; }
  int64_t edges() const { return columns.numel(); }
  Csr to(torch::Device device) const { return {offsets.to(device), columns.to(device), weights.to(device)}; }
  static Csr fromEdges(const torch::Tensor &edges, int64_t nodes);
};

struct SubgraphOptions {
  std::vector<int64_t> fanout = {4, 4};
  bool withWeights = true;
};

// What a sampled neighbourhood consists of. Indices are local to nodes_.
class Subgraph {
public:
  Subgraph() = default;
  Subgraph(torch::Tensor nodes, torch::Tensor sources, torch::Tensor targets, torch::Tensor weights, torch::Tensor degrees)
      : nodes_(std::move(nodes)), sources_(std::move(sources)), targets_(std::move(targets)),
        weights_(std::move(weights)), degrees_(std::move(degrees)) {}

  void to(torch::Device device);
  void attach(torch::Tensor features, torch::Tensor labels) {
    features_ = std::move(features);
    labels_ = std::move(labels);
  }

  torch::Tensor aggregate(const torch::Tensor &values) const;
  torch::Tensor meanAggregate(const torch::Tensor &values) const;
  torch::Tensor normalizedWeights() const;
  torch::Tensor selfLoops() const;
  int64_t size() const { return nodes_.numel(); }

  const torch::Tensor &nodes() const { return nodes_; }
  const torch::Tensor &features() const { return features_; }
  const torch::Tensor &labels() const { return labels_; }
  const torch::Tensor &sources() const { return sources_; }
  const torch::Tensor &targets() const { return targets_; }

private:
  torch::Tensor nodes_, sources_, targets_, weights_, degrees_;
  torch::Tensor features_, labels_;
};

class NeighborSampler {
public:
  NeighborSampler(Csr graph, SubgraphOptions options) : graph_(std::move(graph)), options_(std::move(options)) {}
  Subgraph sample(const torch::Tensor &seeds) const;
  torch::Tensor randomWalk(const torch::Tensor &starts, int64_t length) const;
  std::vector<int64_t> degreesOf(const torch::Tensor &nodes) const;

private:
  Csr graph_;
  SubgraphOptions options_;
};

// Features of all nodes on the host, those of the busiest nodes on a device as well.
class FeatureStore {
public:
  FeatureStore(torch::Tensor features, torch::Device device);
  void pinHot(const torch::Tensor &hot);
  torch::Tensor gather(const torch::Tensor &nodes) const;
  torch::Tensor gatherHot(const torch::Tensor &nodes) const;
  torch::Tensor gatherMixed(const torch::Tensor &nodes) const;
  torch::Tensor standardize(const torch::Tensor &rows) const;
  void write(const torch::Tensor &nodes, const torch::Tensor &rows);
  float at(int64_t node, int64_t column) const;
  double meanOf(int64_t column) const { return features_.select(1, column).mean().item<double>(); }

private:
  torch::Tensor features_, mean_, deviation_;
  torch::Device device_;
  torch::Tensor hotRows_, position_;
};

} // namespace graphkit
