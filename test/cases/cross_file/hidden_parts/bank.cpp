#include "bank.h"

class Statistics {
public:
  torch::Tensor mean;
};

struct Bank::Parts {
  explicit Parts(torch::Device device) : device(device) {}
  torch::Device device;
  torch::Tensor rows;
  Statistics statistics;
};

Bank::Bank(torch::Device device) : parts_(new Parts(device)) {}
Bank::~Bank() = default;

void Bank::add(const torch::Tensor &rows) {
  auto placed = rows.to(parts_->device);
  parts_->rows = parts_->rows.defined() ? torch::cat({parts_->rows, placed}) : placed;
  parts_->statistics.mean = rows.mean(0);
}

torch::Tensor Bank::nearest(const torch::Tensor &query) const {
  return parts_->rows.mv(query).argmax(); // [[device-mixed-op]]
}

torch::Tensor Bank::nearestPlaced(const torch::Tensor &query) const {
  return parts_->rows.mv(query.to(parts_->device)).argmax();
}

const Statistics &Bank::statistics() const { return parts_->statistics; }

torch::Tensor centred(const Statistics &statistics, const torch::Tensor &rows) {
  return rows - statistics.mean; // [[device-mixed-op]]
}

torch::Tensor centredPlaced(const Statistics &statistics, const torch::Tensor &rows) {
  return rows - statistics.mean.to(rows.device());
}
