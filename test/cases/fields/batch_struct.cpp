// Structs of tensors: one field of several is moved, its neighbour is not.
#include <torch/torch.h>

#include <string>

#include "../cases.h"

namespace {

struct TokenBatch {
  torch::Tensor input_ids;
  torch::Tensor attention_mask;
  torch::Tensor labels;
  int64_t size = 0;
};

TokenBatch make_batch() {
  TokenBatch b;
  b.input_ids = torch::randint(0, 50, {4, 10}, torch::kLong);
  b.attention_mask = torch::ones({4, 10});
  b.labels = torch::randint(0, 3, {4}, torch::kLong);
  b.size = 4;
  return b;
}

void mask_field_forgotten_bad() {
  const torch::Device device(torch::kCUDA, 0);
  torch::nn::Embedding emb(50, 8);
  emb->to(device);
  TokenBatch batch = make_batch();
  batch.input_ids = batch.input_ids.to(device);
  batch.labels = batch.labels.to(device);
  auto hidden = emb->forward(batch.input_ids);
  auto pooled = (hidden * batch.attention_mask.unsqueeze(-1)).sum(1); // [[device-mixed-op]]
  pooled.mean().backward();
}

void mask_field_moved_ok() {
  const torch::Device device(torch::kCUDA, 0);
  torch::nn::Embedding emb(50, 8);
  emb->to(device);
  TokenBatch batch = make_batch();
  batch.input_ids = batch.input_ids.to(device);
  batch.attention_mask = batch.attention_mask.to(device);
  auto hidden = emb->forward(batch.input_ids);
  auto pooled = (hidden * batch.attention_mask.unsqueeze(-1)).sum(1);
  pooled.mean().backward();
}

// A struct is a value: moving the fields of a copy does not move the original's.
void fields_of_a_copy_moved_bad() {
  TokenBatch batch = make_batch();
  TokenBatch onGpu = batch;
  onGpu.input_ids = onGpu.input_ids.cuda();
  onGpu.labels = onGpu.labels.cuda();
  torch::nn::Embedding emb(50, 3);
  emb->to(torch::kCUDA);
  auto logits = emb(onGpu.input_ids).mean(1);
  auto loss = torch::nn::functional::cross_entropy(logits, batch.labels); // [[device-loss-input]]
  loss.backward();
}

void fields_of_a_copy_used_ok() {
  TokenBatch batch = make_batch();
  TokenBatch onGpu = batch;
  onGpu.input_ids = onGpu.input_ids.cuda();
  onGpu.labels = onGpu.labels.cuda();
  torch::nn::Embedding emb(50, 3);
  emb->to(torch::kCUDA);
  auto logits = emb(onGpu.input_ids).mean(1);
  auto loss = torch::nn::functional::cross_entropy(logits, onGpu.labels);
  loss.backward();
}

// Aggregate initialisation, one initialiser per field.
struct Transition {
  torch::Tensor state, action, reward, next_state;
};

void aggregate_one_field_on_host_bad() {
  torch::Device dev("cuda:0");
  Transition t{torch::rand({4}, dev), torch::zeros({1}, dev), torch::ones({1}), torch::rand({4}, dev)};
  auto target = t.reward + 0.99 * t.next_state; // [[device-mixed-op]]
  TORCH_CHECK(target.size(0) == 4);
}

void aggregate_all_fields_on_device_ok() {
  torch::Device dev("cuda:0");
  Transition t{torch::rand({4}, dev), torch::zeros({1}, dev), torch::ones({1}, dev), torch::rand({4}, dev)};
  auto target = t.reward + 0.99 * t.next_state;
  TORCH_CHECK(target.size(0) == 4);
}

// A struct with a hand-written to(): eight members were easy, the ninth was added later.
struct GraphBatch {
  torch::Tensor nodes, edges, weights, degree;

  void to(const torch::Device &device) {
    nodes = nodes.to(device);
    edges = edges.to(device);
    weights = weights.to(device);
  }
};

struct CompleteGraphBatch {
  torch::Tensor nodes, edges, weights, degree;

  void to(const torch::Device &device) {
    nodes = nodes.to(device);
    edges = edges.to(device);
    weights = weights.to(device);
    degree = degree.to(device);
  }
};

void own_to_misses_a_member_bad() {
  GraphBatch g{torch::rand({5, 3}), torch::randint(5, {2, 7}, torch::kLong), torch::rand({7}),
               torch::ones({5, 1})};
  g.to(torch::kCUDA);
  auto messages = g.nodes / g.degree; // [[device-mixed-op]]
  TORCH_CHECK(messages.dim() == 2);
}

void own_to_moves_all_members_ok() {
  CompleteGraphBatch g{torch::rand({5, 3}), torch::randint(5, {2, 7}, torch::kLong), torch::rand({7}),
                       torch::ones({5, 1})};
  g.to(torch::kCUDA);
  auto messages = g.nodes / g.degree;
  TORCH_CHECK(messages.dim() == 2);
}

} // namespace

DT_MAIN(mask_field_forgotten_bad, mask_field_moved_ok, fields_of_a_copy_moved_bad, fields_of_a_copy_used_ok,
        aggregate_one_field_on_host_bad, aggregate_all_fields_on_device_ok, own_to_misses_a_member_bad,
        own_to_moves_all_members_ok)
