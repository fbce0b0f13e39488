// Parts of classes that a header only declares, and defines in a source of their own.
#pragma once
#include <torch/torch.h>

#include <memory>

class Statistics;

class Bank {
public:
  explicit Bank(torch::Device device);
  ~Bank();
  void add(const torch::Tensor &rows);
  torch::Tensor nearest(const torch::Tensor &query) const;
  torch::Tensor nearestPlaced(const torch::Tensor &query) const;
  const Statistics &statistics() const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

torch::Tensor centred(const Statistics &statistics, const torch::Tensor &rows);
torch::Tensor centredPlaced(const Statistics &statistics, const torch::Tensor &rows);
