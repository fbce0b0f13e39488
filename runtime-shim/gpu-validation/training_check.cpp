// Holds the library's training against one process with all the data, on the devices that are there. Rank 0
// prints one JSON object per check: {"check": ..., "ok": true|false, "difference": ..., "backend": ...,
// "device": ...}. Start it with RANK, WORLD_SIZE... as torchrun sets them.

#include <device_shim/device_shim.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

namespace {

using device_shim::Communicator;
using torch::nn::Sequential;

constexpr int64_t kWidth = 64, kClasses = 8, kSamples = 48;
constexpr int kSteps = 20;
constexpr double kTolerance = 1e-5; // float, after 20 steps
constexpr double kMaxNorm = 0.05;   // clips in most steps

Sequential makeNet() {
  torch::manual_seed(1);
  Sequential net;
  for (int i = 0; i < 4; ++i) {
    net->push_back(torch::nn::Linear(kWidth, kWidth));
    net->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    net->push_back(torch::nn::Tanh());
  }
  net->push_back(torch::nn::Linear(kWidth, kClasses));
  return net;
}

struct Batch {
  torch::Tensor input, target;
};

// The same on all ranks: made on the CPU from a seed.
Batch batchOf(int step) {
  torch::manual_seed(1000 + step);
  return {torch::randn({kSamples, kWidth}), torch::randint(0, kClasses, {kSamples}, torch::kLong)};
}

Batch partOf(const Batch &whole, const Communicator &ranks) {
  return {whole.input.chunk(ranks.size())[ranks.rank()].to(ranks.device()),
          whole.target.chunk(ranks.size())[ranks.rank()].to(ranks.device())};
}

torch::Tensor lossOf(const torch::Tensor &output, const torch::Tensor &target) {
  return torch::nn::functional::cross_entropy(output.to(torch::kFloat), target);
}

Sequential reference(torch::Device device, bool clip) {
  auto net = makeNet();
  net->to(device);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < kSteps; ++step) {
    const auto batch = batchOf(step);
    optimizer.zero_grad();
    lossOf(net->forward(batch.input.to(device)), batch.target.to(device)).backward();
    if (clip)
      torch::nn::utils::clip_grad_norm_(net->parameters(), kMaxNorm);
    optimizer.step();
  }
  return net;
}

double distance(const std::vector<torch::Tensor> &a, const std::vector<torch::Tensor> &b) {
  torch::NoGradGuard noGrad;
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(
        most, (a[i].cpu().to(torch::kDouble) - b[i].cpu().to(torch::kDouble)).abs().max().item<double>());
  return most;
}

class Report {
public:
  explicit Report(std::shared_ptr<Communicator> ofRanks) : ranks(std::move(ofRanks)) {}

  void add(const std::string &check, double difference, bool ok) {
    // A check holds when it holds on every rank.
    const bool all = ranks->reduce_number(ok, device_shim::Reduction::minimum) > 0.5;
    difference = ranks->reduce_number(difference, device_shim::Reduction::maximum);
    failed = failed || !all;
    if (ranks->rank() == 0)
      std::cout << "{\"check\": \"" << check << "\", \"ok\": " << (all ? "true" : "false")
                << ", \"difference\": " << difference << ", \"ranks\": " << ranks->size()
                << ", \"backend\": \"" << ranks->backend() << "\", \"device\": \"" << ranks->device().str()
                << "\"}" << std::endl;
  }

  bool failed = false;

private:
  std::shared_ptr<Communicator> ranks;
};

void checkDataParallel(const std::shared_ptr<Communicator> &ranks, Report &report) {
  auto net = makeNet();
  net->to(ranks->device());
  device_shim::DistributedDataParallel<Sequential> model(net, ranks);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < kSteps; ++step) {
    const auto own = partOf(batchOf(step), *ranks);
    optimizer.zero_grad();
    lossOf(model.forward(own.input), own.target).backward();
    optimizer.step();
  }
  const double difference = distance(net->parameters(), reference(ranks->device(), false)->parameters());
  report.add("DistributedDataParallel equals one process", difference, difference < kTolerance);
}

void checkSharded(const std::shared_ptr<Communicator> &ranks, const std::string &folder,
                  const device_shim::ShardedOptions &options, const std::string &name, Report &report) {
  device_shim::ShardedDataParallel<Sequential> model(makeNet(), ranks, options);
  torch::optim::AdamW optimizer(model.optimizer_parameters(), torch::optim::AdamWOptions(1e-3));
  int clipped = 0;
  for (int step = 0; step < kSteps; ++step) {
    const auto own = partOf(batchOf(step), *ranks);
    optimizer.zero_grad();
    lossOf(model.forward(own.input), own.target).backward();
    clipped += model.unscale_and_clip_grads(kMaxNorm) > kMaxNorm;
    optimizer.step();
  }
  const auto path = folder + "/model.pt";
  model.save(path, &optimizer);
  auto loaded = makeNet();
  torch::load(loaded, path, torch::kCPU);
  const double difference = distance(loaded->parameters(), reference(ranks->device(), true)->parameters());
  report.add(name, difference, difference < kTolerance && clipped > kSteps / 2);
  ranks->barrier();
}

// Overflow skips a step on all ranks alike and shrinks the scale; then training goes on and learns.
void checkHalf(const std::shared_ptr<Communicator> &ranks, torch::ScalarType type, const std::string &name,
               Report &report) {
  device_shim::ShardedOptions options;
  options.parameter_type = type;
  device_shim::ShardedDataParallel<Sequential> model(makeNet(), ranks, options);
  torch::optim::AdamW optimizer(model.optimizer_parameters(), torch::optim::AdamWOptions(3e-3));
  device_shim::GradScalerOptions scaling;
  // The largest float16 is 65504, the largest bfloat16 3.4e38.
  scaling.initial_scale = type == torch::kHalf ? 1 << 26 : 1e42;
  scaling.backoff_factor = type == torch::kHalf ? 0.25 : 1e-3;
  device_shim::GradScaler scaler(scaling);
  int skipped = 0, taken = 0;
  double first = 0, last = 0;
  const auto own = partOf(batchOf(0), *ranks);
  for (int step = 0; step < 2 * kSteps; ++step) {
    optimizer.zero_grad();
    const auto loss = lossOf(model.forward(own.input), own.target);
    scaler.scale(loss).backward();
    model.unscale_and_clip_grads(1.0, &scaler);
    (scaler.step(optimizer) ? taken : skipped) += 1;
    scaler.update();
    last = loss.item<double>();
    first = step == 0 ? last : first;
  }
  report.add(name, last / first, skipped > 0 && taken > kSteps && last < 0.8 * first);
}

int run(const std::string &folder) {
  auto ranks = device_shim::init_distributed();
  Report report(ranks);
  checkDataParallel(ranks, report);
  device_shim::ShardedOptions options;
  checkSharded(ranks, folder, options, "ZeRO-3 with clipping equals one process", report);
  options.stage = 2;
  checkSharded(ranks, folder, options, "ZeRO-2 with clipping equals one process", report);
  options.stage = 3;
  options.offload_optimizer = true;
  options.offload_ratio = 0.5;
  checkSharded(ranks, folder, options, "ZeRO-3, half of the optimizer in host memory, with clipping", report);
  options.offload_ratio = 1;
  options.offload_parameters = true;
  checkSharded(ranks, folder, options, "ZeRO-3, optimizer and parameters in host memory", report);
  checkHalf(ranks, torch::kBFloat16, "bfloat16 with loss scaling: skips overflows and learns", report);
  if (ranks->device().is_cuda() && !std::getenv("VIRTUAL_GPUS"))
    checkHalf(ranks, torch::kHalf, "float16 with loss scaling: skips overflows and learns", report);
  ranks->barrier();
  return report.failed ? 1 : 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? argv[1] : "/tmp");
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
}
