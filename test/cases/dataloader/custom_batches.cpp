// Loader batches of custom structs, vectors of examples without Stack, TensorDataset, hand-written batching.
#include "../cases.h"
#include <torch/torch.h>

#include <vector>

namespace data = torch::data;

struct PairSample {
  torch::Tensor left, right, label;
};

struct PairDataset : data::datasets::Dataset<PairDataset, PairSample> {
  PairSample get(size_t) override { return {torch::rand({3}), torch::rand({3}), torch::ones({1})}; }
  torch::optional<size_t> size() const override { return 4; }
};

struct CollatePairs : data::transforms::Collation<PairSample> {
  PairSample apply_batch(std::vector<PairSample> samples) override {
    std::vector<torch::Tensor> l, r, y;
    for (auto &s : samples) {
      l.push_back(s.left);
      r.push_back(s.right);
      y.push_back(s.label);
    }
    return {torch::stack(l), torch::stack(r), torch::stack(y)};
  }
};

static void custom_struct_one_field_forgotten_bad() {
  torch::Device device(torch::kCUDA);
  torch::nn::Bilinear scorer(3, 3, 1);
  scorer->to(device);
  auto loader = data::make_data_loader(PairDataset().map(CollatePairs()), 2);
  for (auto &batch : *loader) {
    auto left = batch.left.to(device);
    auto score = scorer->forward(left, batch.right); // [[device-mixed-op]]
    auto loss = torch::mse_loss(score, batch.label.to(device));
    loss.backward();
  }
}

static void custom_struct_all_fields_moved_ok() {
  torch::Device device(torch::kCUDA);
  torch::nn::Bilinear scorer(3, 3, 1);
  scorer->to(device);
  auto loader = data::make_data_loader(PairDataset().map(CollatePairs()), 2);
  for (auto &batch : *loader) {
    auto left = batch.left.to(device);
    auto score = scorer->forward(left, batch.right.to(device));
    auto loss = torch::mse_loss(score, batch.label.to(device));
    loss.backward();
  }
}

static void custom_struct_label_forgotten_bad() {
  torch::Device device(torch::kCUDA);
  torch::nn::Bilinear scorer(3, 3, 1);
  scorer->to(device);
  auto loader = data::make_data_loader(PairDataset().map(CollatePairs()), 2);
  for (auto &batch : *loader) {
    auto score = scorer->forward(batch.left.to(device), batch.right.to(device));
    auto loss = torch::mse_loss(score, batch.label); // [[device-loss-input]]
    loss.backward();
  }
}

static void unstacked_examples_bad() {
  torch::nn::Linear net(3, 2);
  net->to(torch::kCUDA);
  auto set = data::datasets::TensorDataset(torch::rand({6, 3}));
  auto loader = data::make_data_loader(set, 3);
  for (std::vector<data::Example<torch::Tensor, data::example::NoTarget>> &examples : *loader) {
    std::vector<torch::Tensor> rows;
    for (auto &e : examples)
      rows.push_back(e.data);
    auto out = net->forward(torch::stack(rows)); // [[device-mixed-op]]
    TORCH_CHECK(out.defined());
  }
}

static void unstacked_examples_moved_ok() {
  torch::nn::Linear net(3, 2);
  net->to(torch::kCUDA);
  auto set = data::datasets::TensorDataset(torch::rand({6, 3}));
  auto loader = data::make_data_loader(set, 3);
  for (std::vector<data::Example<torch::Tensor, data::example::NoTarget>> &examples : *loader) {
    std::vector<torch::Tensor> rows;
    for (auto &e : examples)
      rows.push_back(e.data.to(torch::kCUDA));
    auto out = net->forward(torch::stack(rows));
    TORCH_CHECK(out.defined());
  }
}

// Batching by hand: slices of an epoch-wide tensor, permuted on the host.
static void sliced_epoch_targets_bad() {
  const auto cuda = torch::Device(torch::kCUDA, 0);
  auto inputs = torch::rand({10, 3}).to(cuda);
  auto targets = torch::rand({10, 1});
  torch::nn::Linear net(3, 1);
  net->to(cuda);
  for (int64_t begin = 0; begin < 10; begin += 5) {
    auto x = inputs.slice(0, begin, begin + 5);
    auto y = targets.narrow(0, begin, 5);
    torch::smooth_l1_loss(net(x), y).backward(); // [[device-loss-input]]
  }
}

static void sliced_epoch_permutation_on_host_ok() {
  const auto cuda = torch::Device(torch::kCUDA, 0);
  auto inputs = torch::rand({10, 3}).to(cuda);
  auto targets = torch::rand({10, 1}).to(cuda);
  auto order = torch::randperm(10); // a CPU index into CUDA tensors is legal
  torch::nn::Linear net(3, 1);
  net->to(cuda);
  for (int64_t begin = 0; begin < 10; begin += 5) {
    auto picked = order.slice(0, begin, begin + 5);
    auto x = inputs.index({picked});
    auto y = targets.index({picked});
    torch::smooth_l1_loss(net(x), y).backward();
  }
}

DT_MAIN(custom_struct_one_field_forgotten_bad, custom_struct_all_fields_moved_ok,
        custom_struct_label_forgotten_bad, unstacked_examples_bad, unstacked_examples_moved_ok,
        sliced_epoch_targets_bad, sliced_epoch_permutation_on_host_ok)
