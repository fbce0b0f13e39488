#pragma once

#include "data.h"

#include <string>

namespace recsys {

struct TowerOptions {
  int64_t users = 10;
  int64_t items = 20;
  int64_t width = 8;
  double learningRate = 0.05;
};

class TowersImpl : public torch::nn::Module {
public:
  explicit TowersImpl(TowerOptions options);
  torch::Tensor user(const torch::Tensor &ids, const torch::Tensor &history);
  torch::Tensor item(const torch::Tensor &ids);
  torch::Tensor forward(const Batch &batch);
  torch::Tensor itemTable() const { return items_->weight; }

private:
  torch::nn::Embedding users_{nullptr}, items_{nullptr};
  torch::nn::Linear mix_{nullptr};
};
TORCH_MODULE(Towers);

class Recommender {
public:
  Recommender(TowerOptions options, torch::Device device);

  double trainStep(const Batch &batch);
  double weightedStep(const Batch &batch);
  double contrastiveStep(const Batch &batch, const NegativeSampler &sampler);
  double sampledSoftmax(const Batch &batch, const NegativeSampler &sampler);

  torch::Tensor scores(const torch::Tensor &users, const torch::Tensor &history);
  torch::Tensor scoresWithoutSeen(const torch::Tensor &users, const torch::Tensor &history);
  torch::Tensor recommend(const torch::Tensor &users, const torch::Tensor &history, int64_t k);

  void buildIndex();
  torch::Tensor search(const torch::Tensor &queries, int64_t k) const;
  torch::Tensor searchOnHost(const torch::Tensor &queries, int64_t k) const;

  double hitRate(const Batch &batch, int64_t k);
  double meanRank(const Batch &batch);
  std::vector<float> exportItem(int64_t item) const;
  std::vector<std::vector<float>> exportItems() const;
  void importItem(int64_t item, const std::vector<float> &values);
  std::vector<int64_t> coldItems(float threshold) const;

private:
  TowerOptions options_;
  torch::Device device_;
  Towers model_{nullptr};
  std::unique_ptr<torch::optim::Adagrad> optimizer_;
  torch::Tensor index_;
};

} // namespace recsys
