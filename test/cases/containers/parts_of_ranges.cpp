// Algorithms over a part of a list, and lists filled from others.
#include "../cases.h"
#include <torch/torch.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

namespace {

struct Step {
  torch::Tensor state, action;
  bool last = false;
};

class Buffer {
public:
  void push(Step step) {
    if (steps.size() == 4)
      steps.pop_front();
    steps.push_back(std::move(step));
  }
  std::vector<Step> sample(std::size_t count) {
    std::vector<Step> chosen;
    std::sample(steps.begin(), steps.end(), std::back_inserter(chosen), count, random);
    return chosen;
  }

private:
  std::deque<Step> steps;
  std::mt19937 random{3};
};

void fill(Buffer &buffer, torch::Device device) {
  for (int i = 0; i < 6; ++i)
    buffer.push({torch::rand({3}, device), torch::rand({1}, device), i == 5});
}

std::vector<torch::Tensor> headOnHost() {
  return {torch::ones({2}), torch::ones({2}, torch::kCUDA), torch::ones({2}, torch::kCUDA)};
}

} // namespace

void sampled_bad() {
  Buffer buffer;
  fill(buffer, torch::kCPU);
  std::vector<torch::Tensor> states;
  for (const Step &step : buffer.sample(2))
    states.push_back(step.state);
  auto values = torch::stack(states) * torch::ones({3}, torch::kCUDA); // [[device-mixed-op]]
}

void sampled_ok() {
  Buffer buffer;
  fill(buffer, torch::kCUDA);
  std::vector<torch::Tensor> states;
  for (const Step &step : buffer.sample(2))
    states.push_back(step.state);
  auto values = torch::stack(states) * torch::ones({3}, torch::kCUDA);
}

void copied_bad() {
  auto parts = headOnHost();
  std::vector<torch::Tensor> all;
  std::copy(parts.begin(), parts.end(), std::back_inserter(all));
  auto sum = all[2] + torch::ones({2}); // [[device-mixed-op]]
}

void copied_ok() {
  auto parts = headOnHost();
  std::vector<torch::Tensor> rest;
  std::copy(parts.begin() + 1, parts.end(), std::back_inserter(rest));
  auto sum = rest[0] + torch::ones({2}, torch::kCUDA);
}

void sum_of_the_rest_bad() {
  auto parts = headOnHost();
  auto sum = std::accumulate(parts.begin() + 1, parts.end(), parts[0]); // [[device-mixed-op]]
}

void sum_of_the_rest_ok() {
  auto parts = headOnHost();
  auto sum = std::accumulate(std::next(parts.begin(), 1), parts.end(), parts[1]);
}

void scaled_rest_bad() {
  auto parts = headOnHost();
  std::for_each(parts.begin(), parts.end(), [](torch::Tensor &part) {
    part *= torch::full({2}, 0.5, torch::kCUDA); // [[device-mixed-op]]
  });
}

void scaled_rest_ok() {
  auto parts = headOnHost();
  std::for_each(std::next(parts.begin()), parts.end(),
                [](torch::Tensor &part) { part *= torch::full({2}, 0.5, torch::kCUDA); });
}

void generated_bad() {
  std::vector<Step> steps;
  std::generate_n(std::back_inserter(steps), 3, [] { return Step{torch::ones({2}), torch::ones({1}, torch::kCUDA)}; });
  for (const Step &step : steps)
    auto sum = step.state + torch::ones({2}, torch::kCUDA); // [[device-mixed-op]]
}

void generated_ok() {
  std::vector<Step> steps;
  std::generate_n(std::back_inserter(steps), 3, [] { return Step{torch::ones({2}), torch::ones({1}, torch::kCUDA)}; });
  for (const Step &step : steps)
    auto sum = step.action + torch::ones({2}, torch::kCUDA);
}

DT_MAIN(sampled_bad, sampled_ok, copied_bad, copied_ok, sum_of_the_rest_bad, sum_of_the_rest_ok, scaled_rest_bad,
        scaled_rest_ok, generated_bad, generated_ok)
