#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gnn {

/// Rows of features by node; where the rows are is up to the store.
class FeatureStore {
public:
  virtual ~FeatureStore() = default;
  virtual torch::Tensor gather(const torch::Tensor &nodes) = 0;
  virtual int64_t dim() const = 0;
};

/// In memory of the host; rows are copied to `target`.
class HostStore : public FeatureStore {
public:
  HostStore(torch::Tensor features, torch::Device target);
  torch::Tensor gather(const torch::Tensor &nodes) override;
  int64_t dim() const override { return features_.size(1); }
  torch::Tensor gather_rows(const torch::Tensor &nodes) const;
  void update(const torch::Tensor &nodes, const torch::Tensor &rows);

private:
  torch::Tensor features_;
  torch::Device target_;
};

/// In pinned memory of the host, which kernels read over the bus.
class PinnedStore : public FeatureStore {
public:
  PinnedStore(const torch::Tensor &features, torch::Device device);
  torch::Tensor gather(const torch::Tensor &nodes) override;
  int64_t dim() const override { return features_.size(1); }

private:
  torch::Tensor features_;
  torch::Device device_;
};

/// The most used rows on a GPU, the rest on the host.
class CachedStore : public FeatureStore {
public:
  CachedStore(torch::Tensor features, const torch::Tensor &hot, torch::Device device);
  torch::Tensor gather(const torch::Tensor &nodes) override;
  int64_t dim() const override { return cold_.size(1); }
  torch::Tensor gather_split(const torch::Tensor &nodes);
  double hit_rate(const torch::Tensor &nodes) const;
  torch::Tensor gather_cold(const torch::Tensor &nodes) const;

private:
  torch::Device device_;
  torch::Tensor cold_, hot_, slots_; // slots_: of each node in hot_, or -1
};

std::unique_ptr<FeatureStore> make_store(const std::string &kind, torch::Tensor features, torch::Device device);

struct Graph {
  torch::Tensor indptr, indices;

  int64_t nodes() const { return indptr.numel() - 1; }
  Graph to(torch::Device device) const { return {indptr.to(device), indices.to(device)}; }
  Graph pinned() const { return {indptr.pin_memory(), indices.pin_memory()}; }
};

struct Block {
  torch::Tensor nodes, neighbors, counts;
};

class NeighborSampler {
public:
  NeighborSampler(Graph graph, int64_t fanout, std::optional<torch::Device> device);

  Block sample(const torch::Tensor &seeds) const;
  Block sample_uniform(const torch::Tensor &seeds) const;
  std::vector<Block> sample_hops(const torch::Tensor &seeds, int hops) const;
  torch::Tensor degrees(const torch::Tensor &seeds) const;
  std::vector<int64_t> neighbors_of(int64_t node) const;

private:
  Graph graph_;
  int64_t fanout_;
  std::optional<torch::Device> device_;
};

// Kernels.
torch::Tensor gather_cuda(const torch::Tensor &features, const torch::Tensor &nodes, torch::Device device);
torch::Tensor segment_mean(const torch::Tensor &rows, const torch::Tensor &counts);
torch::Tensor segment_max(const torch::Tensor &rows, const torch::Tensor &counts);
Block sample_cuda(const Graph &graph, const torch::Tensor &seeds, int64_t fanout);

torch::Tensor aggregate(const torch::Tensor &rows, const torch::Tensor &counts, const std::string &how);
torch::Tensor normalize_by_degree(const torch::Tensor &rows, const Graph &graph);
torch::Tensor repin(const torch::Tensor &features);
torch::Tensor stage(const torch::Tensor &features);

} // namespace gnn
