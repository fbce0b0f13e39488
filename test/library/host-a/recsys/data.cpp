#include "data.h"

namespace recsys {

Batch Batch::to(const torch::Device &device) const {
  Batch moved;
  moved.users = users.to(device, /*non_blocking=*/true);
  moved.items = items.to(device, /*non_blocking=*/true);
  moved.ratings = ratings.to(device, /*non_blocking=*/true);
  moved.history = history.to(device, /*non_blocking=*/true);
  moved.weights = weights;
  return moved;
}

Batch &Batch::pin() {
  for (auto *tensor : {&users, &items, &ratings, &weights, &history})
    if (tensor->defined() && !tensor->is_cuda() && torch::cuda::is_available())
      *tensor = tensor->pin_memory();
  return *this;
}

Batch Collator::operator()(const std::vector<Interaction> &rows) const {
  TORCH_CHECK(!rows.empty(), "an empty batch");
  const auto count = static_cast<int64_t>(rows.size());
  Batch batch;
  batch.users = torch::empty({count}, torch::kLong);
  batch.items = torch::empty({count}, torch::kLong);
  batch.ratings = torch::empty({count});
  batch.weights = torch::empty({count});
  batch.history = torch::zeros({count, length_}, torch::kLong);
  auto users = batch.users.accessor<int64_t, 1>(), items = batch.items.accessor<int64_t, 1>();
  auto ratings = batch.ratings.accessor<float, 1>(), weights = batch.weights.accessor<float, 1>();
  auto history = batch.history.accessor<int64_t, 2>();
  for (int64_t i = 0; i < count; ++i) {
    users[i] = rows[i].user;
    items[i] = rows[i].item;
    ratings[i] = rows[i].rating;
    weights[i] = rows[i].weight;
    const auto found = seen_.find(rows[i].user);
    if (found == seen_.end())
      continue;
    const auto length = std::min<int64_t>(length_, static_cast<int64_t>(found->second.size()));
    for (int64_t k = 0; k < length; ++k)
      history[i][k] = found->second[k];
  }
  return batch;
}

NegativeSampler::NegativeSampler(torch::Tensor popularity, torch::Device device, double power) : device_(device) {
  frequency_ = popularity / popularity.sum();
  weights_ = popularity.pow(power).to(device_);
}

torch::Tensor NegativeSampler::popular(int64_t rows, int64_t count) const {
  return torch::multinomial(weights_.unsqueeze(0).expand({rows, -1}), count, /*replacement=*/true);
}

torch::Tensor NegativeSampler::uniform(int64_t rows, int64_t count) const {
  return torch::randint(1, items(), {rows, count}, torch::kLong);
}

torch::Tensor NegativeSampler::logCorrection(const torch::Tensor &items) const {
  const auto index = items.to(device_).flatten();
  return torch::log(frequency_.index_select(0, index)).view_as(items); // [[device-mixed-op]]
}

} // namespace recsys
