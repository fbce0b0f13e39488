// Step times of DistributedDataParallel and of stage 2, and bandwidth of all-reduce. Rank 0 prints one JSON
// object per line:
//   {"metric": "ddp_step_ms" or "stage2_step_ms", "value": ..., "ranks": ..., "backend": ...}
//   {"metric": "all_reduce_GBps", "bytes": ..., "value": ..., ...}     (bus bandwidth, 10^9 bytes/s)
// reference_ddp.py measures the same with PyTorch's own DistributedDataParallel.
//
//   step_bench [--layers N] [--width N] [--batch N] [--steps N] [--megabytes N]

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/ShardedDataParallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace {

int64_t option(int argc, char **argv, const std::string &name, int64_t fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == name)
      return std::stoll(argv[i + 1]);
  return fallback;
}

void finishKernels(const device_shim::Communicator &ranks) {
  if (ranks.device().is_cuda())
    torch::cuda::synchronize();
}

/// Median over rounds of the seconds that one call of `step` takes.
template <typename Step>
double medianSeconds(device_shim::Communicator &ranks, int rounds, int64_t steps, Step step) {
  std::vector<double> times;
  for (int round = 0; round < rounds + 1; ++round) { // the first warms up
    ranks.barrier();
    finishKernels(ranks);
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < steps; ++i)
      step();
    finishKernels(ranks);
    if (round > 0)
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
                      static_cast<double>(steps));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void print(const device_shim::Communicator &ranks, const std::string &metric, double value, int64_t bytes) {
  if (ranks.rank() != 0)
    return;
  std::cout << "{\"metric\": \"" << metric << "\", \"value\": " << value << ", \"ranks\": " << ranks.size()
            << ", \"backend\": \"" << ranks.backend() << "\"";
  if (bytes > 0)
    std::cout << ", \"bytes\": " << bytes;
  std::cout << "}" << std::endl;
}

torch::nn::Sequential makeNet(int64_t layers, int64_t width) {
  torch::manual_seed(1);
  torch::nn::Sequential net;
  for (int64_t i = 0; i < layers; ++i) {
    net->push_back(torch::nn::Linear(width, width));
    net->push_back(torch::nn::ReLU());
  }
  return net;
}

template <typename Model>
double stepMilliseconds(device_shim::Communicator &ranks, Model &model, torch::optim::Optimizer &optimizer,
                        const torch::Tensor &input, int64_t steps) {
  const double seconds = medianSeconds(ranks, 7, steps, [&] {
    optimizer.zero_grad();
    model.forward(input).square().mean().backward();
    optimizer.step();
  });
  return seconds * 1e3;
}

void measureBandwidth(device_shim::Communicator &ranks, int64_t most) {
  for (int64_t megabytes = 1; megabytes <= most; megabytes *= 4) {
    const int64_t bytes = megabytes << 20;
    const auto tensor = torch::zeros({bytes / 4}, ranks.device());
    const double seconds = medianSeconds(ranks, 5, 5, [&] { ranks.all_reduce(tensor); });
    // What crosses each link: 2 (n - 1) / n of the bytes (NCCL tests, doc/PERFORMANCE.md).
    const double n = ranks.size();
    print(ranks, "all_reduce_GBps", static_cast<double>(bytes) / seconds * 2 * (n - 1) / n / 1e9, bytes);
  }
}

void measure(int argc, char **argv) {
  const auto layers = option(argc, argv, "--layers", 24), width = option(argc, argv, "--width", 1024);
  const auto batch = option(argc, argv, "--batch", 256), steps = option(argc, argv, "--steps", 20);
  auto ranks = device_shim::init_distributed();
  const auto input = torch::randn({batch, width}, ranks->device());
  {
    auto net = makeNet(layers, width);
    net->to(ranks->device());
    device_shim::DistributedDataParallel<torch::nn::Sequential> model(net, ranks);
    torch::optim::SGD optimizer(net->parameters(), 1e-3);
    print(*ranks, "ddp_step_ms", stepMilliseconds(*ranks, model, optimizer, input, steps), 0);
  }
  if (ranks->size() == 1)
    return;
  {
    device_shim::ShardedOptions options;
    options.stage = 2;
    device_shim::ShardedDataParallel<torch::nn::Sequential> model(makeNet(layers, width), ranks, options);
    torch::optim::SGD optimizer(model.optimizer_parameters(), 1e-3);
    print(*ranks, "stage2_step_ms", stepMilliseconds(*ranks, model, optimizer, input, steps), 0);
  }
  measureBandwidth(*ranks, option(argc, argv, "--megabytes", 256));
}

} // namespace

int main(int argc, char **argv) {
  try {
    measure(argc, argv);
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
}
