// Loops whose first round differs, and flags and numbers that say after a loop what it has done.
#include "../cases.h"

#include <torch/torch.h>
#include <vector>

namespace {

torch::Device gpu(int index) { return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index)); }

// A state that is moved when the loop first needs it.
void run_lazily(int steps) {
  auto x = torch::rand({2}, torch::kCUDA);
  auto state = torch::zeros({2});
  bool moved = false;
  for (int i = 0; i < steps; ++i) {
    if (!moved) {
      state = state.to(x.device());
      moved = true;
    }
    state = state + x;
  }
}
void lazily_ok() { run_lazily(3); }

void run_too_late(int steps) {
  auto x = torch::rand({2}, torch::kCUDA);
  auto state = torch::zeros({2});
  bool started = false;
  for (int i = 0; i < steps; ++i) {
    if (started)
      state = state.to(x.device());
    started = true;
    state = state + x; // [[device-mixed-op]]
  }
}
void lazily_bad() { run_too_late(3); }

void run_until_done(int steps) {
  auto x = torch::rand({2}, torch::kCUDA);
  auto state = torch::zeros({2});
  int round = 0;
  while (true) {
    if (round == 0)
      state = state.to(x.device());
    state = state + x;
    if (++round > steps)
      break;
  }
}
void first_of_many_ok() { run_until_done(2); }

void run_from_second(int steps) {
  auto x = torch::rand({2}, torch::kCUDA);
  auto state = torch::zeros({2});
  int round = 0;
  while (true) {
    if (round > 0)
      state = state.to(x.device());
    state = state + x; // [[device-mixed-op]]
    if (++round > steps)
      break;
  }
}
void first_of_many_bad() { run_from_second(2); }

// What each round makes stands for all rounds, though the first is asked for.
std::vector<torch::Tensor> shards(int count) {
  std::vector<torch::Tensor> made;
  for (int i = 0; i < count; ++i) {
    auto shard = torch::rand({2}, gpu(i));
    if (i == 0)
      shard = shard * 2;
    made.push_back(shard);
  }
  return made;
}
void run_chain(int count) {
  auto made = shards(count);
  auto sum = torch::zeros({2}, gpu(0));
  for (int i = 0; i < count; ++i) {
    if (i > 0)
      sum = sum.to(gpu(i));
    sum = made[i] + sum;
  }
}
void chain_ok() { run_chain(4); }

void run_chain_without_moves(int count) {
  auto made = shards(count);
  auto sum = torch::zeros({2}, gpu(0));
  for (int i = 0; i < count; ++i)
    sum = made[i] + sum; // [[device-mixed-op]]
}
void chain_bad() { run_chain_without_moves(4); }

// A flag and a number that remember what the loop has found.
void use_found(const std::vector<int> &ids) {
  bool found = false;
  auto t = torch::rand({2});
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == 3) {
      found = true;
      t = t.cuda();
    }
  if (found)
    t = t + torch::rand({2}, torch::kCUDA);
}
void found_ok() {
  use_found({1, 3});
  use_found({1, 2});
}

void use_best(const std::vector<int> &scores) {
  int best = -1;
  auto t = torch::rand({2});
  for (int i = 0; i < static_cast<int>(scores.size()); ++i)
    if (scores[i] > 3) {
      best = i;
      t = t.cuda();
    }
  if (best >= 0)
    t = t + torch::rand({2}, torch::kCUDA);
}
void best_ok() {
  use_best({1, 5});
  use_best({1, 2});
}

void use_best_on_cpu(const std::vector<int> &scores) {
  int best = -1;
  auto t = torch::rand({2});
  for (int i = 0; i < static_cast<int>(scores.size()); ++i)
    if (scores[i] > 3) {
      best = i;
      t = t.cpu();
    }
  if (best >= 0)
    t = t + torch::rand({2}, torch::kCUDA); // [[device-mixed-op]]
}
void best_bad() { use_best_on_cpu({1, 5}); }

// Every round moves it to the other device.
void run_ping_pong(int steps) {
  bool onGpu = false;
  auto t = torch::rand({2});
  for (int i = 0; i < steps; ++i) {
    t = onGpu ? t.cpu() : t.cuda();
    onGpu = !onGpu;
    if (onGpu)
      t = t + torch::rand({2}, torch::kCUDA);
    else
      t = t + torch::rand({2});
  }
}
void ping_pong_ok() { run_ping_pong(3); }

void run_ping_ping(int steps) {
  bool onGpu = false;
  auto t = torch::rand({2});
  for (int i = 0; i < steps; ++i) {
    t = onGpu ? t.cpu() : t.cuda();
    if (onGpu)
      t = t + torch::rand({2}, torch::kCUDA);
    else
      t = t + torch::rand({2}); // [[device-mixed-op]]
    onGpu = !onGpu;
  }
}
void ping_pong_bad() { run_ping_ping(3); }

// What is made of the elements in a round that is asked for is kept for all rounds.
void run_products(int count) {
  std::vector<torch::Tensor> weights, products;
  for (int i = 0; i < count; ++i)
    weights.push_back(torch::rand({2, 2}, gpu(i)));
  for (int i = 0; i < count; ++i) {
    auto product = torch::mm(weights[i], weights[i]);
    if (i == 0)
      std::puts("first");
    products.push_back(product);
  }
  for (int i = 0; i < count; ++i)
    products[i] = products[i] + weights[i];
}
void products_ok() { run_products(4); }

// The loop of the call below is another one.
torch::Tensor nested(int depth, int count) {
  torch::Tensor sum = torch::zeros(2, torch::kCUDA);
  for (int i = 0; i < count; ++i) {
    auto part = torch::rand(2);
    if (i == 0) {
      part = part.cuda();
      if (depth > 0)
        sum = sum + nested(depth - 1, count);
    }
    if (i != 0)
      part = part + torch::rand(2);
    sum = sum + part.cuda();
  }
  return sum;
}
void nested_ok() { nested(2, 2); }

} // namespace

DT_MAIN(lazily_ok, lazily_bad, first_of_many_ok, first_of_many_bad, chain_ok, chain_bad, found_ok, best_ok, best_bad,
        ping_pong_ok, ping_pong_bad, products_ok,
        nested_ok)
