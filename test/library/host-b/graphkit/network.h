#pragma once

#include "graph.h"

#include <string>

namespace graphkit {

class GraphConvImpl : public torch::nn::Module {
public:
  GraphConvImpl(int64_t inputs, int64_t outputs, double dropout = 0.0);
  torch::Tensor forward(const Subgraph &graph, const torch::Tensor &x);

private:
  torch::nn::Linear own_{nullptr}, others_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  double dropout_;
};
TORCH_MODULE(GraphConv);

// Attention of every node to its neighbours with a bias for each relation.
class RelationBiasImpl : public torch::nn::Module {
public:
  RelationBiasImpl(int64_t relations, int64_t width);
  torch::Tensor forward(const torch::Tensor &messages, const torch::Tensor &relations);

private:
  torch::nn::Linear project_{nullptr};
  torch::Tensor bias_;
};
TORCH_MODULE(RelationBias);

struct Epoch {
  double loss = 0;
  double accuracy = 0;
  int64_t batches = 0;
};

class NodeClassifier {
public:
  NodeClassifier(int64_t inputs, int64_t classes, std::shared_ptr<FeatureStore> store, torch::Tensor labels,
                 torch::Device device);

  Subgraph load(const NeighborSampler &sampler, const torch::Tensor &seeds) const;
  torch::Tensor forward(const Subgraph &graph);
  Epoch trainEpoch(const NeighborSampler &sampler, const std::vector<torch::Tensor> &seeds);
  double seedLoss(const NeighborSampler &sampler, const torch::Tensor &seeds);
  double smoothness(const Subgraph &graph);
  torch::Tensor confusion(const NeighborSampler &sampler, const torch::Tensor &seeds);
  torch::Tensor propagate(const Subgraph &graph, int64_t rounds);
  torch::Tensor relationScores(const torch::Tensor &messages, const torch::Tensor &relations);
  torch::Tensor weightedLoss(const Subgraph &graph, const torch::Tensor &classWeights);
  void restore(const std::string &file);
  void store(const std::string &file) const;
  torch::Tensor prototypes(const std::string &file, const Subgraph &graph);

private:
  int64_t classes_;
  std::shared_ptr<FeatureStore> features_;
  torch::Tensor labels_;
  torch::Device device_;
  GraphConv first_{nullptr};
  torch::nn::Linear last_{nullptr};
  RelationBias relation_{nullptr};
  std::unique_ptr<torch::optim::Adam> optimizer_;
};

} // namespace graphkit
