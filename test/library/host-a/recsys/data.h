#pragma once

#include <torch/torch.h>

#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace recsys {

struct Interaction {
  int64_t user;
  int64_t item;
  float rating;
  float weight = 1.0f;
};

struct Batch {
  torch::Tensor users;
  torch::Tensor items;
  torch::Tensor ratings;
  torch::Tensor weights;
  torch::Tensor history; // users x length, padded with item 0
  int64_t size() const { return users.size(0); }
  Batch to(const torch::Device &device) const;
  Batch &pin();
};

class InteractionSet : public torch::data::datasets::Dataset<InteractionSet, Interaction> {
public:
  explicit InteractionSet(std::vector<Interaction> interactions) : interactions_(std::move(interactions)) {}
  Interaction get(size_t index) override { return interactions_.at(index); }
  torch::optional<size_t> size() const override { return interactions_.size(); }

private:
  std::vector<Interaction> interactions_;
};

// Brings interactions together and adds what each user has seen before.
class Collator {
public:
  Collator(std::unordered_map<int64_t, std::vector<int64_t>> seen, int64_t length)
      : seen_(std::move(seen)), length_(length) {}
  Batch operator()(const std::vector<Interaction> &rows) const;

private:
  std::unordered_map<int64_t, std::vector<int64_t>> seen_;
  int64_t length_;
};

class NegativeSampler {
public:
  NegativeSampler(torch::Tensor popularity, torch::Device device, double power = 0.75);
  torch::Tensor popular(int64_t rows, int64_t count) const;
  torch::Tensor uniform(int64_t rows, int64_t count) const;
  torch::Tensor logCorrection(const torch::Tensor &items) const;
  int64_t items() const { return weights_.numel(); }

private:
  torch::Device device_;
  torch::Tensor weights_;
  torch::Tensor frequency_;
};

} // namespace recsys
