// Gradients asked for by name, records kept under names, checkpoints of several tensors, pieces of a tensor.
#include "../cases.h"
#include <torch/torch.h>

#include <map>
#include <queue>
#include <sstream>

using torch::Tensor;

namespace {

const torch::Device kFirst(torch::kCUDA, 0), kSecond(torch::kCUDA, 1);

// ---- torch::autograd::grad: a gradient is where its input is

class Accumulated {
public:
  explicit Accumulated(torch::nn::Sequential model) : model_(model) {}
  void prepare() {
    for (const auto &parameter : model_->parameters())
      sums_.push_back(torch::zeros_like(parameter));
  }
  void place() { model_->to(kFirst); }
  void add(const Tensor &x) {
    auto gradients = torch::autograd::grad({model_->forward(x).sum()}, model_->parameters());
    for (size_t i = 0; i < gradients.size(); ++i)
      sums_[i] += gradients[i]; // [[device-mixed-op]]
  }
  void addPlaced(const Tensor &x) {
    auto gradients = torch::autograd::grad({model_->forward(x).sum()}, model_->parameters());
    for (size_t i = 0; i < gradients.size(); ++i)
      sums_[i] += gradients[i].to(sums_[i].device());
  }

private:
  torch::nn::Sequential model_;
  std::vector<Tensor> sums_;
};

} // namespace

void gradient_sums_bad() {
  Accumulated sums(torch::nn::Sequential(torch::nn::Linear(3, 2)));
  sums.prepare();
  sums.place();
  sums.add(torch::rand({2, 3}, kFirst));
}

void gradient_sums_ok() {
  Accumulated sums(torch::nn::Sequential(torch::nn::Linear(3, 2)));
  sums.prepare();
  sums.place();
  sums.addPlaced(torch::rand({2, 3}, kFirst));
}

// ---- records under names that come from the model

namespace {

struct Anchor {
  Tensor value, weight;
};

Tensor penalty_bad(torch::nn::Module &model) {
  std::map<std::string, Anchor> anchors;
  for (auto &item : model.named_parameters())
    anchors[item.key()] = {item->detach().clone(), item->detach().pow(2).cpu()};
  auto sum = torch::zeros({});
  for (const auto &[name, anchor] : anchors)
    sum = sum + (anchor.weight * anchor.value).sum(); // [[device-mixed-op]]
  return sum;
}

Tensor penalty_ok(torch::nn::Module &model) {
  std::map<std::string, Anchor> anchors;
  for (auto &item : model.named_parameters())
    anchors[item.key()] = {item->detach().clone(), item->detach().pow(2)};
  auto sum = torch::zeros({});
  for (const auto &[name, anchor] : anchors)
    sum = sum + (anchor.weight * anchor.value).sum();
  return sum;
}

// Tables kept by length and GPU: what one GPU has made is not found by the other.
class Tables {
public:
  Tensor apply(const Tensor &x) { return x * of(x.size(0), x.device()); }

private:
  const Tensor &of(int64_t length, torch::Device device) {
    const int64_t key = length * 64 + device.index();
    auto found = tables_.find(key);
    if (found != tables_.end())
      return found->second;
    return tables_.emplace(key, torch::arange(length, device)).first->second;
  }
  std::map<int64_t, Tensor> tables_;
};

} // namespace

void anchors_bad() {
  torch::nn::Linear model(3, 3);
  model->to(kFirst);
  penalty_bad(*model);
}

void anchors_ok() {
  torch::nn::Linear model(3, 3);
  model->to(kFirst);
  penalty_ok(*model);
}

void tables_by_gpu_ok() {
  Tables tables;
  for (const auto &device : {kFirst, kSecond})
    tables.apply(torch::rand({4}, device));
}

// ---- several tensors in one checkpoint, through the text of a stream

namespace {

std::string saved(const Tensor &mean, const Tensor &best) {
  std::ostringstream out;
  torch::save(std::vector<Tensor>{mean.cpu(), best.cpu()}, out);
  return out.str();
}

} // namespace

void restored_mean_bad() {
  std::istringstream in(saved(torch::rand({3}, kFirst), torch::rand({}, kFirst)));
  std::vector<Tensor> values;
  torch::load(values, in);
  auto y = torch::rand({3}, kFirst) - values[0]; // [[device-mixed-op]]
}

void restored_number_ok() {
  std::istringstream in(saved(torch::rand({3}, kFirst), torch::rand({}, kFirst)));
  std::vector<Tensor> values;
  torch::load(values, in);
  auto y = torch::minimum(torch::rand({3}, kFirst), values[1]); // a single number from the host
}

// ---- pieces of one tensor, each on a GPU of its own

void shards_bad() {
  std::vector<Tensor> shards;
  int rank = 0;
  for (const auto &piece : torch::rand({4, 4}).chunk(2, 0))
    shards.push_back(piece.to(torch::Device(torch::kCUDA, rank++)));
  auto whole = torch::cat(shards, -1); // [[device-mixed-op]]
}

void shards_ok() {
  std::vector<Tensor> shards;
  int rank = 0;
  for (const auto &piece : torch::rand({4, 4}).chunk(2, 0))
    shards.push_back(piece.to(torch::Device(torch::kCUDA, rank++)));
  for (auto &shard : shards)
    shard = shard.cpu();
  auto whole = torch::cat(shards, -1);
}

// ---- layers found by a detour say nothing of the constant they are moved to

namespace {

struct Tower {
  std::vector<torch::nn::Linear> layers;
};

Tensor apart_bad(Tower &tower) { return tower.layers.front()(torch::rand({1, 3}, kSecond)); } // [[device-mixed-op]]
Tensor apart_ok(Tower &tower) { return tower.layers.front()(torch::rand({1, 3}, kFirst)); }

} // namespace

void detour_bad() {
  Tower tower;
  tower.layers.push_back(torch::nn::Linear(3, 3));
  tower.layers.back()->to(kFirst);
  apart_bad(tower);
}

void detour_ok() {
  Tower tower;
  tower.layers.push_back(torch::nn::Linear(3, 3));
  tower.layers.back()->to(kFirst);
  apart_ok(tower);
}

// ---- an empty optional, an example made in place, a rank that follows from a dimension

namespace {

struct GuidedImpl : torch::nn::Module {
  GuidedImpl() {
    trunk = register_module("trunk", torch::nn::Linear(4, 4));
    condition = torch::nn::Linear(2, 4);
  }
  Tensor forward(const Tensor &x, const c10::optional<Tensor> &c) {
    if (!c)
      return trunk(x);
    return trunk(x + condition(*c)); // [[device-unregistered-tensor]]
  }
  torch::nn::Linear trunk{nullptr}, condition{nullptr};
};
TORCH_MODULE(Guided);

struct UnguidedImpl : torch::nn::Module {
  UnguidedImpl() {
    trunk = register_module("trunk", torch::nn::Linear(4, 4));
    condition = torch::nn::Linear(2, 4);
  }
  Tensor forward(const Tensor &x, const c10::optional<Tensor> &c) {
    if (!c)
      return trunk(x);
    return trunk(x + condition(*c));
  }
  torch::nn::Linear trunk{nullptr}, condition{nullptr};
};
TORCH_MODULE(Unguided);

} // namespace

void guided_bad() {
  Guided model;
  model->to(kFirst);
  model(torch::rand({2, 4}, kFirst), torch::rand({2, 2}, kFirst));
}

void unguided_ok() {
  Unguided model;
  model->to(kFirst);
  model(torch::rand({2, 4}, kFirst), c10::nullopt);
}

void queued_bad() {
  std::vector<torch::data::Example<>> examples;
  for (int i = 0; i < 3; ++i)
    examples.emplace_back(torch::rand({4}), torch::rand({4}));
  std::queue<torch::data::Example<>> ready;
  for (const auto &example : examples)
    ready.push({example.data.to(kFirst), example.target});
  auto next = std::move(ready.front());
  auto loss = torch::mse_loss(next.data, next.target); // [[device-loss-input]]
}

void queued_ok() {
  std::vector<torch::data::Example<>> examples;
  for (int i = 0; i < 3; ++i)
    examples.emplace_back(torch::rand({4}), torch::rand({4}));
  std::queue<torch::data::Example<>> ready;
  for (const auto &example : examples)
    ready.push({example.data.to(kFirst), example.target.to(kFirst)});
  auto next = std::move(ready.front());
  auto loss = torch::mse_loss(next.data, next.target);
}

void priorities_bad() {
  auto table = torch::ones({10});
  torch::nn::Linear q(3, 1);
  q->to(kFirst);
  auto rows = torch::multinomial(table, 4);
  auto error = q(torch::rand({10, 3}, kFirst).index({rows})).squeeze(1);
  table.index_put_({rows}, error.detach().abs()); // [[device-mixed-op]]
}

void priorities_ok() {
  auto table = torch::ones({10});
  torch::nn::Linear q(3, 1);
  q->to(kFirst);
  auto rows = torch::multinomial(table, 4);
  auto error = q(torch::rand({10, 3}, kFirst).index({rows})).squeeze(1);
  table.index_put_({rows}, error.detach().abs().cpu());
}

// ---- what waits for a GPU throws nothing away

void wait_ok() {
  auto x = torch::rand({4}, kFirst);
  x.argmax(-1).cpu();
  x.add(1).div(2).cpu();
}

void thrown_away_bad() {
  auto x = torch::rand({4}, kFirst);
  x[0].cpu();         // [[device-discarded-move]]
  x.add(1).to(kSecond); // [[device-discarded-move]]
}

// ---- one mistake, one finding: a model that never moved fails at its first layer

void unmoved_bad() {
  const auto device = torch::cuda::is_available() ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  torch::nn::Sequential generator(torch::nn::Linear(4, 4), torch::nn::ReLU(), torch::nn::Linear(4, 4));
  torch::nn::Sequential judge(torch::nn::Linear(4, 1), torch::nn::Sigmoid());
  judge->to(device);
  auto fake = generator->forward(torch::rand({2, 4}, device)); // [[device-mixed-op]]
  auto verdict = judge->forward(fake);
}

DT_MAIN(gradient_sums_bad, gradient_sums_ok, anchors_bad, anchors_ok, tables_by_gpu_ok, restored_mean_bad,
        restored_number_ok, shards_bad, shards_ok, detour_bad, detour_ok, guided_bad, unguided_ok, queued_bad,
        queued_ok, priorities_bad, priorities_ok, wait_ok, thrown_away_bad, unmoved_bad)
