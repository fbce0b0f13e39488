#include "ann_index.h"

namespace ann {

CoarseQuantizer::CoarseQuantizer(int64_t lists, int64_t width, torch::Device device)
    : device_(device), centroids_(torch::randn({lists, width}, device)) {}

torch::Tensor CoarseQuantizer::assign(const torch::Tensor& x) const {
  return torch::cdist(x.to(device_), centroids_).argmin(1);
}

void CoarseQuantizer::train(const torch::Tensor& x, int iterations) {
  const auto data = x.to(device_);
  for (int i = 0; i < iterations; ++i) {
    const auto assignment = assign(data);
    auto sums = torch::zeros_like(centroids_);
    sums.index_add_(0, assignment, data);
    const auto counts = histogram_lists(assignment, centroids_.size(0)).to(torch::kFloat).clamp_min(1);
    centroids_ = sums / counts.unsqueeze(1);
  }
}

torch::Tensor CoarseQuantizer::residual(const torch::Tensor& x, const torch::Tensor& assignment) const {
  const auto nearest = centroids_.index_select(0, assignment.to(device_));
  return x.to(nearest.options()) - nearest;
}

torch::Tensor CoarseQuantizer::imbalance(const torch::Tensor& assignment) const {
  const auto counts = assignment.cpu().bincount({}, centroids_.size(0)).to(torch::kFloat);
  const auto spread = torch::cdist(centroids_, centroids_).mean(1);
  return (counts / counts.mean() * spread).max(); // [[device-mixed-op]]
}

InvertedLists::InvertedLists(int64_t lists, int64_t width, torch::Device device) : device_(device) {
  for (int64_t i = 0; i < lists; ++i)
    entries_.push_back(torch::empty({0, width}, device_));
}

void InvertedLists::add(const torch::Tensor& x, const torch::Tensor& assignment) {
  const auto where = assignment.cpu();
  const auto list = where.accessor<int64_t, 1>();
  for (int64_t i = 0; i < where.size(0); ++i) {
    auto& entry = entries_.at(list[i]);
    entry = torch::cat({entry, x.slice(0, i, i + 1).to(entry.device())});
  }
}

void InvertedLists::evict(int64_t list) { entries_.at(list) = entries_.at(list).cpu(); }

void InvertedLists::touch(int64_t list) {
  auto& entry = entries_.at(list);
  if (entry.device() != device_)
    entry = entry.to(device_);
}

torch::Tensor InvertedLists::scan(const torch::Tensor& query, int64_t list) const {
  return entries_.at(list).matmul(query.to(device_)); // [[device-mixed-op]]
}

torch::Tensor InvertedLists::scan_resident(const torch::Tensor& query, int64_t list) {
  touch(list);
  return entries_.at(list).matmul(query.to(device_));
}

std::vector<int64_t> InvertedLists::sizes() const {
  std::vector<int64_t> out;
  for (const auto& entry : entries_)
    out.push_back(entry.size(0));
  return out;
}

} // namespace ann
