// Parameters of complex numbers.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;

namespace {

struct WaveImpl : torch::nn::Module {
  WaveImpl() {
    torch::manual_seed(1);
    factor = register_parameter("factor", torch::randn({kWidth, 4}, torch::kComplexFloat));
    last = register_module("last", torch::nn::Linear(4, kClasses));
    idle = register_parameter("idle", torch::ones({2}, torch::kComplexFloat));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    return last->forward(torch::matmul(x.to(torch::kComplexFloat), factor).abs());
  }
  torch::Tensor factor, idle;
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Wave);

constexpr double kMaxNorm = 0.5;

// One process, clipped.
std::vector<torch::Tensor> trainedAlone(double *norm) {
  Wave net;
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < 5; ++step) {
    const auto batch = batchOf(step, 32);
    optimizer.zero_grad();
    (loss(net->forward(batch.input), batch) * 10).backward();
    double squares = 0;
    for (const auto &parameter : net->parameters())
      if (parameter.grad().defined())
        squares += parameter.grad().abs().square().sum().item<double>();
    *norm = std::sqrt(squares);
    for (const auto &parameter : net->parameters())
      if (parameter.grad().defined())
        parameter.mutable_grad().mul_(std::min(1.0, kMaxNorm / *norm));
    optimizer.step();
  }
  return net->parameters();
}

double complexDistance(const std::vector<torch::Tensor> &a, const std::vector<torch::Tensor> &b) {
  torch::NoGradGuard noGrad;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, (a[i] - b[i]).abs().max().item<double>());
  return most;
}

} // namespace

RANK_WORKER(complex_data_parallel) {
  auto all = init_distributed();
  Wave net;
  DataParallelOptions options;
  options.find_unused_parameters = true;
  DistributedDataParallel<Wave> model(net, all, options);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  double norm = 0;
  const auto expected = trainedAlone(&norm);
  for (int step = 0; step < 5; ++step) {
    const auto own = batchOf(step, 32).part(all->rank(), all->size());
    optimizer.zero_grad();
    (loss(model.forward(own.input), own) * 10).backward();
    double squares = 0;
    for (const auto &parameter : net->parameters())
      if (parameter.grad().defined())
        squares += parameter.grad().abs().square().sum().item<double>();
    for (const auto &parameter : net->parameters())
      if (parameter.grad().defined())
        parameter.mutable_grad().mul_(std::min(1.0, kMaxNorm / std::sqrt(squares)));
    optimizer.step();
  }
  MUST(complexDistance(net->parameters(), expected) < 1e-5);
}

TEST(Complex, DataParallel) { ranks::runAll({"complex_data_parallel", 2}); }

RANK_WORKER(complex_sharded) {
  auto all = init_distributed();
  ShardedOptions options;
  options.stage = 2;
  Wave net;
  ShardedDataParallel<Wave> model(net, all, options);
  torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
  double norm = 0, expectedNorm = 0;
  const auto expected = trainedAlone(&expectedNorm);
  for (int step = 0; step < 5; ++step) {
    const auto own = batchOf(step, 32).part(all->rank(), all->size());
    optimizer.zero_grad();
    (loss(model.forward(own.input), own) * 10).backward();
    norm = model.unscale_and_clip_grads(kMaxNorm);
    optimizer.step();
  }
  model.synchronize();
  MUST(std::abs(norm - expectedNorm) < 1e-4);
  MUST(complexDistance(net->parameters(), expected) < 1e-5);
}

TEST(Complex, NormsCountBothParts) { ranks::runAll({"complex_sharded", 2}); }

// The norm is taken in the type of the gradient.
RANK_WORKER(double_norm) {
  auto all = init_distributed();
  ShardedOptions options;
  options.stage = 2;
  torch::nn::Linear net(torch::nn::LinearOptions(1, 4).bias(false));
  net->to(torch::kDouble);
  ShardedDataParallel<torch::nn::Linear> model(net, all, options);
  (model.forward(torch::ones({1, 1}, torch::kDouble)) * 1e60).sum().backward();
  MUST(std::abs(model.grad_norm() - 2e60) < 1e50);
}

TEST(Complex, DoublesKeepTheirRange) { ranks::runAll({"double_norm", 2}); }
