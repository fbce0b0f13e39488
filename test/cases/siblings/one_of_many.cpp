// One sibling of N is forgotten: the most frequent real shape, in functions and structs of realistic length.
#include "../cases.h"
#include <torch/torch.h>

#include <tuple>
#include <utility>
#include <vector>

using torch::Tensor;

struct Rays {
  Tensor origins, directions, nears, fars, colours, weights, ids;
};

static Rays castRays(int64_t n) {
  return Rays{torch::rand({n, 3}), torch::rand({n, 3}), torch::zeros({n, 1}), torch::ones({n, 1}),
              torch::rand({n, 3}), torch::rand({n, 1}), torch::arange(n)};
}

static Rays allButTheFars(const Rays &r, const torch::Device &d) {
  Rays out;
  out.origins = r.origins.to(d);
  out.directions = r.directions.to(d);
  out.nears = r.nears.to(d);
  out.fars = r.fars;
  out.colours = r.colours.to(d);
  out.weights = r.weights.to(d);
  out.ids = r.ids.to(d);
  return out;
}

static Rays allOf(const Rays &r, const torch::Device &d) {
  Rays out;
  out.origins = r.origins.to(d);
  out.directions = r.directions.to(d);
  out.nears = r.nears.to(d);
  out.fars = r.fars.to(d);
  out.colours = r.colours.to(d);
  out.weights = r.weights.to(d);
  out.ids = r.ids.to(d);
  return out;
}

void returned_struct_one_field_bad() {
  auto rays = allButTheFars(castRays(4), torch::kCUDA);
  auto t = rays.nears + (rays.fars - rays.nears) * 0.5; // [[device-mixed-op]]
  TORCH_CHECK(t.defined());
}

void returned_struct_all_fields_ok() {
  auto rays = allOf(castRays(4), torch::kCUDA);
  auto t = rays.nears + (rays.fars - rays.nears) * 0.5;
  auto points = rays.origins + t * rays.directions;
  auto loss = torch::mse_loss(points * rays.weights, rays.colours);
  TORCH_CHECK(loss.is_cuda());
}

// The field that was not moved is used on the host only.
void unmoved_field_used_on_host_ok() {
  auto rays = allButTheFars(castRays(4), torch::kCUDA);
  auto farthest = (rays.fars - torch::zeros({4, 1})).max().item<float>();
  auto t = rays.nears + farthest;
  TORCH_CHECK(t.is_cuda());
}

static Tensor sixInputs(const torch::Device &device, bool last) {
  auto user = torch::randint(9, {4}, torch::kLong).to(device);
  auto item = torch::randint(9, {4}, torch::kLong).to(device);
  auto age = torch::rand({4, 1}).to(device);
  auto price = torch::rand({4, 1}).to(device);
  auto hour = torch::rand({4, 1}).to(device);
  auto clicks = torch::rand({4, 1});
  if (last)
    clicks = clicks.to(device);
  torch::nn::Embedding users(9, 3), items(9, 3);
  users->to(device);
  items->to(device);
  auto features = torch::cat({users(user), items(item), age, price, hour, clicks}, 1); // [[device-mixed-op]]
  return features.sum();
}

void sixth_input_forgotten_bad() { sixInputs(torch::kCUDA, false); }

static Tensor sixInputsMoved(const torch::Device &device) {
  auto user = torch::randint(9, {4}, torch::kLong).to(device);
  auto item = torch::randint(9, {4}, torch::kLong).to(device);
  auto age = torch::rand({4, 1}).to(device);
  auto price = torch::rand({4, 1}).to(device);
  auto hour = torch::rand({4, 1}).to(device);
  auto clicks = torch::rand({4, 1}).to(device);
  torch::nn::Embedding users(9, 3), items(9, 3);
  users->to(device);
  items->to(device);
  auto features = torch::cat({users(user), items(item), age, price, hour, clicks}, 1);
  return features.sum();
}

void all_six_inputs_moved_ok() { sixInputsMoved(torch::kCUDA); }

// Two models, three optimizers, one model missed.
void target_network_missed_bad() {
  torch::Device device(torch::kCUDA);
  torch::nn::Linear actor(4, 2), critic(6, 1), targetCritic(6, 1);
  actor->to(device);
  critic->to(device);
  auto obs = torch::rand({3, 4}, device), next = torch::rand({3, 4}, device);
  auto reward = torch::rand({3, 1}, device);
  auto nextInput = torch::cat({next, actor(next)}, 1);
  auto target = reward + 0.99 * targetCritic(nextInput); // [[device-mixed-op]]
  auto value = critic(torch::cat({obs, actor(obs)}, 1));
  torch::mse_loss(value, target.detach()).backward();
}

void target_network_moved_ok() {
  torch::Device device(torch::kCUDA);
  torch::nn::Linear actor(4, 2), critic(6, 1), targetCritic(6, 1);
  for (auto *net : {&actor, &critic, &targetCritic})
    (*net)->to(device);
  auto obs = torch::rand({3, 4}, device), next = torch::rand({3, 4}, device);
  auto reward = torch::rand({3, 1}, device);
  auto nextInput = torch::cat({next, actor(next)}, 1);
  auto target = reward + 0.99 * targetCritic(nextInput);
  auto value = critic(torch::cat({obs, actor(obs)}, 1));
  torch::mse_loss(value, target.detach()).backward();
}

// The training branch moves, the validation branch of the same function does not.
static double epoch(torch::nn::Linear &net, bool training) {
  double total = 0;
  for (int step = 0; step < 2; ++step) {
    auto x = torch::rand({4, 3}), y = torch::rand({4, 1});
    if (training) {
      auto loss = torch::mse_loss(net(x.to(torch::kCUDA)), y.to(torch::kCUDA));
      loss.backward();
      total += loss.item<double>();
    } else {
      torch::NoGradGuard off;
      total += torch::mse_loss(net(x.to(torch::kCUDA)), y).item<double>(); // [[device-loss-input]]
    }
  }
  return total;
}

void validation_branch_bad() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  epoch(net, true);
  epoch(net, false);
}

static double epochMoved(torch::nn::Linear &net, bool training) {
  double total = 0;
  for (int step = 0; step < 2; ++step) {
    auto x = torch::rand({4, 3}).to(torch::kCUDA), y = torch::rand({4, 1}).to(torch::kCUDA);
    torch::AutoGradMode mode(training);
    auto loss = torch::mse_loss(net(x), y);
    if (training)
      loss.backward();
    total += loss.item<double>();
  }
  return total;
}

void validation_branch_ok() {
  torch::nn::Linear net(3, 1);
  net->to(torch::kCUDA);
  epochMoved(net, true);
  epochMoved(net, false);
}

DT_MAIN(returned_struct_one_field_bad, returned_struct_all_fields_ok, unmoved_field_used_on_host_ok,
        sixth_input_forgotten_bad, all_six_inputs_moved_ok, target_network_missed_bad,
        target_network_moved_ok, validation_branch_bad, validation_branch_ok)
