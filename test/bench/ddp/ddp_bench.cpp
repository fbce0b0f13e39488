// Throughput of DistributedDataParallel and of the naive way, one all-reduce per parameter after backward(),
// on a multilayer perceptron. Start it with device-run:
//
//   device-run -n 4 -- ddp_bench [--layers N] [--width N] [--batch N] [--rounds N] [--at-least RATIO]
//
// Rank 0 prints the medians of the step times and their ratio; with --at-least a smaller ratio is an error.

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace {

double option(int argc, char **argv, const std::string &name, double fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == name)
      return std::stod(argv[i + 1]);
  return fallback;
}

torch::nn::Sequential perceptron(int64_t layers, int64_t width) {
  torch::manual_seed(1);
  torch::nn::Sequential net;
  for (int64_t i = 0; i < layers; ++i) {
    net->push_back(torch::nn::Linear(width, width));
    net->push_back(torch::nn::ReLU());
  }
  return net;
}

void averageOneByOne(device_shim::Communicator &ranks, torch::nn::Sequential &net) {
  for (auto &parameter : net->parameters()) {
    ranks.all_reduce(parameter.grad());
    parameter.mutable_grad().div_(ranks.size());
  }
}

template <typename Step> double seconds(device_shim::Communicator &ranks, int steps, Step step) {
  ranks.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i)
    step();
  ranks.barrier();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / steps;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int measure(int argc, char **argv) {
  const auto layers = static_cast<int64_t>(option(argc, argv, "--layers", 100));
  const auto width = static_cast<int64_t>(option(argc, argv, "--width", 64));
  const auto batch = static_cast<int64_t>(option(argc, argv, "--batch", 16));
  const auto rounds = static_cast<int>(option(argc, argv, "--rounds", 7));
  const double least = option(argc, argv, "--at-least", 0);

  auto ranks = device_shim::init_distributed();
  auto naive = perceptron(layers, width), net = perceptron(layers, width);
  naive->to(ranks->device());
  net->to(ranks->device());
  device_shim::DistributedDataParallel<torch::nn::Sequential> model(net, ranks);
  torch::optim::SGD naiveOptimizer(naive->parameters(), 1e-3), optimizer(net->parameters(), 1e-3);
  const auto input = torch::randn({batch, width}, ranks->device());

  std::vector<double> naiveTimes, times;
  for (int round = 0; round < rounds + 1; ++round) { // the first warms up
    const int steps = 2;
    const double one = seconds(*ranks, steps, [&] {
      naiveOptimizer.zero_grad();
      naive->forward(input).square().mean().backward();
      averageOneByOne(*ranks, naive);
      naiveOptimizer.step();
    });
    const double other = seconds(*ranks, steps, [&] {
      optimizer.zero_grad();
      model.forward(input).square().mean().backward();
      optimizer.step();
    });
    if (round > 0) {
      naiveTimes.push_back(one);
      times.push_back(other);
    }
  }
  const double ratio = median(naiveTimes) / median(times);
  if (ranks->rank() == 0)
    std::cout << ranks->size() << " ranks, " << ranks->backend() << ", " << layers << " layers of " << width
              << ": per parameter " << median(naiveTimes) * 1e3 << " ms, DistributedDataParallel "
              << median(times) * 1e3 << " ms, ratio " << ratio << std::endl;
  return ranks->rank() == 0 && ratio < least ? 1 : 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return measure(argc, argv);
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
}
