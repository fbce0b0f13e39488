// Ranges that go in step: std::transform over two of them, and parameters that are told apart by a counter.
#include "../cases.h"

#include <algorithm>
#include <torch/torch.h>
#include <vector>

namespace {

std::vector<torch::Tensor> scatter(const torch::Tensor &batch, const std::vector<torch::Device> &devices) {
  std::vector<torch::Tensor> parts;
  auto pieces = batch.chunk(static_cast<int64_t>(devices.size()));
  std::transform(pieces.begin(), pieces.end(), devices.begin(), std::back_inserter(parts),
                 [](const torch::Tensor &piece, torch::Device device) { return piece.to(device); });
  return parts;
}

torch::Tensor join(const std::vector<torch::Tensor> &parts) {
  return torch::cat(parts); // [[device-mixed-op]]
}
torch::Tensor join_on_host(std::vector<torch::Tensor> parts) {
  for (auto &part : parts)
    part = part.cpu();
  return torch::cat(parts);
}

void scatter_bad() { join(scatter(torch::rand({4, 2}), {torch::Device("cuda:0"), torch::Device("cuda:1")})); }
void scatter_ok() {
  join_on_host(scatter(torch::rand({4, 2}), {torch::Device("cuda:0"), torch::Device("cuda:1")}));
}

void products_ok() {
  std::vector<torch::Tensor> values{torch::rand({2}), torch::rand({2}, torch::kCUDA)};
  std::vector<torch::Tensor> weights{torch::rand({2}), torch::rand({2}, torch::kCUDA)};
  std::vector<torch::Tensor> products(2);
  std::transform(values.begin(), values.end(), weights.begin(), products.begin(),
                 [](const torch::Tensor &value, const torch::Tensor &weight) { return value * weight; });
}
void products_bad() {
  std::vector<torch::Tensor> values{torch::rand({2}), torch::rand({2}, torch::kCUDA)};
  std::vector<torch::Tensor> weights{torch::rand({2}, torch::kCUDA), torch::rand({2})};
  std::vector<torch::Tensor> products(2);
  std::transform(values.begin(), values.end(), weights.begin(), products.begin(),
                 [](const torch::Tensor &value, const torch::Tensor &weight) {
                   return value * weight; // [[device-mixed-op]]
                 });
}

// The first partition stays on the GPU, the rest is offloaded.
struct Partition {
  torch::Tensor master, gradient;
};

std::vector<Partition> partition(const std::vector<torch::Tensor> &parameters) {
  std::vector<Partition> partitions;
  int resident = 0;
  for (const auto &parameter : parameters) {
    const auto where = resident++ < 1 ? torch::Device("cuda:0") : torch::Device("cpu");
    partitions.push_back({parameter.detach().to(where), torch::ones_like(parameter).to(where)});
  }
  return partitions;
}

void clip_bad() {
  torch::nn::Linear layer(4, 3);
  layer->to(torch::Device("cuda:0"));
  auto scale = torch::full({}, 0.5, torch::Device("cuda:0"));
  for (auto &each : partition(layer->parameters()))
    each.gradient.mul_(scale); // [[device-mixed-op]]
}
void clip_ok() {
  torch::nn::Linear layer(4, 3);
  layer->to(torch::Device("cuda:0"));
  auto scale = torch::full({}, 0.5, torch::Device("cuda:0"));
  for (auto &each : partition(layer->parameters()))
    each.gradient.mul_(scale.to(each.gradient.device()));
}

// Both tensors of the layer are moved, each by itself.
void moved_one_by_one_ok() {
  torch::nn::Linear layer(4, 3);
  for (auto &parameter : layer->parameters())
    parameter.set_data(parameter.to(torch::kCUDA));
  layer->forward(torch::rand({2, 4}, torch::kCUDA));
}

} // namespace

DT_MAIN(scatter_bad, scatter_ok, products_ok, products_bad, clip_bad, clip_ok, moved_one_by_one_ok)
