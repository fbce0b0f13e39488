#pragma once

#include <torch/torch.h>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gs {

using torch::Tensor;
using torch::optional;

/// Compressed sparse columns; `weights` are those of the edges.
struct Csc {
  Tensor indptr, indices;
  optional<Tensor> weights;

  static Csc from_coo(const Tensor& row, const Tensor& col, int64_t nodes, optional<Tensor> weights = {});
  Csc to(torch::Device device) const;
  Csc& pin();
  torch::Device device() const { return indptr.device(); }
};

struct Block {
  Tensor row, col, edge;
  int64_t num_src = 0, num_dst = 0;
  Block to(const torch::Device& device) const;
};

struct MiniBatch {
  std::vector<Block> blocks;
  Tensor input_nodes, seeds;
  std::map<std::string, Tensor> extra;
  MiniBatch to(const torch::Device& device) const;
};

// sampling.cu
std::tuple<Tensor, Tensor> sample_neighbors_cuda(const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
                                                 int64_t fanout, const optional<Tensor>& weights);
Tensor unique_cuda(const Tensor& nodes);
Tensor random_walk_cuda(const Csc& graph, const Tensor& start, int64_t length);
Tensor gather_uva(const Tensor& table, const Tensor& index);
Tensor degrees_cuda(const Csc& graph);

class NeighborSampler {
 public:
  NeighborSampler(Csc graph, std::vector<int64_t> fanouts) : graph_(std::move(graph)), fanouts_(std::move(fanouts)) {}
  MiniBatch sample(const Tensor& seeds) const;
  Tensor edge_weights_of(const Block& block) const;
  /// Chances with which a node is drawn as negative.
  Tensor negatives(int64_t count) const;
  Tensor negatives_of(const Tensor& scores, int64_t count) const;
  const Csc& graph() const { return graph_; }

 private:
  std::pair<Tensor, Tensor> sample_cpu(const Tensor& seeds, int64_t fanout) const;
  Csc graph_;
  std::vector<int64_t> fanouts_;
};

/// Keeps hot rows on a GPU, and the rest on the host.
class FeatureCache {
 public:
  FeatureCache(Tensor table, torch::Device device, int64_t hot);
  void warm(const Tensor& by_degree);
  Tensor fetch(const Tensor& nodes) const;
  Tensor fetch_naive(const Tensor& nodes) const;
  double hit_rate(const Tensor& nodes) const;

 private:
  Tensor table_, rows_, slot_;
  torch::Device device_;
  int64_t hot_;
};

/// Embeddings of earlier batches.
class History {
 public:
  History(int64_t nodes, int64_t dim) : table_(torch::zeros({nodes, dim})), age_(torch::zeros({nodes}, torch::kLong)) {}
  void push(const Tensor& nodes, const Tensor& values);
  Tensor pull(const Tensor& nodes, const torch::Device& device) const;
  void tick(const Tensor& nodes);

 private:
  Tensor table_, age_;
};

class SageConvImpl : public torch::nn::Module {
 public:
  SageConvImpl(int64_t in, int64_t out);
  Tensor forward(const Tensor& x, const Block& block);
  Tensor forward_weighted(const Tensor& x, const Block& block, const Tensor& weights);

 private:
  torch::nn::Linear self_{nullptr}, neighbor_{nullptr};
};
TORCH_MODULE(SageConv);

class LinkTrainer {
 public:
  LinkTrainer(SageConv conv, torch::Device device) : conv_(std::move(conv)), device_(device) { conv_->to(device_); }
  double step(const MiniBatch& batch, const Tensor& features);
  double step_pairs(const MiniBatch& batch, const Tensor& features, const std::vector<float>& labels);
  void on_batch(std::function<MiniBatch(MiniBatch)> hook) { hook_ = std::move(hook); }

 private:
  SageConv conv_;
  torch::Device device_;
  std::function<MiniBatch(MiniBatch)> hook_;
};

} // namespace gs
