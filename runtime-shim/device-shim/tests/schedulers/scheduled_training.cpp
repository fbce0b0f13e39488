// A training program for test_schedulers.py: says which rank it is, trains on its part of the data, and
// compares the result with that of one process. `scheduled_training STEPS`: with many steps it trains until
// somebody ends it.
#include <device_shim/device_shim.h>
#include <torch/torch.h>

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace {

using torch::nn::Linear;
using torch::nn::Sequential;

constexpr int64_t kWidth = 16, kSamples = 24;
constexpr int kCompared = 20; // steps after which the result is compared

Sequential makeNet() {
  torch::manual_seed(1);
  return Sequential(Linear(kWidth, kWidth), torch::nn::Tanh(), Linear(kWidth, 1));
}

// The same on all ranks: made on the CPU from a seed.
torch::Tensor batchOf(int step) {
  torch::manual_seed(1000 + step);
  return torch::randn({kSamples, kWidth});
}

torch::optim::SGD optimizerOf(const Sequential &net) {
  return torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
}

Sequential trainedAlone() {
  auto net = makeNet();
  auto optimizer = optimizerOf(net);
  for (int step = 0; step < kCompared; ++step) {
    optimizer.zero_grad();
    net->forward(batchOf(step)).square().mean().backward();
    optimizer.step();
  }
  return net;
}

double distance(const Sequential &a, const Sequential &b) {
  torch::NoGradGuard noGrad;
  double most = 0;
  const auto left = a->parameters(), right = b->parameters();
  for (size_t i = 0; i < left.size(); ++i)
    most = std::max(most, (left[i].cpu() - right[i]).abs().max().item<double>());
  return most;
}

// In one write, so that the lines of the ranks do not mix.
void say(const device_shim::Communicator &ranks, const std::string &what) {
  std::ostringstream line;
  line << "rank " << ranks.rank() << " of " << ranks.size() << " " << what << "\n";
  std::cout << line.str() << std::flush;
}

} // namespace

int main(int argc, char **argv) {
  auto ranks = device_shim::init_distributed();
  const auto device = ranks->device();
  say(*ranks, "local " + std::to_string(ranks->local_rank()) + " on " + device.str() + " pid " +
                  std::to_string(getpid()));
  auto net = makeNet();
  net->to(device);
  device_shim::DistributedDataParallel<Sequential> model(net, ranks);
  auto optimizer = optimizerOf(net);
  const int steps = argc > 1 ? std::atoi(argv[1]) : kCompared;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    model.forward(batchOf(step).chunk(ranks->size())[ranks->rank()].to(device)).square().mean().backward();
    optimizer.step();
    if (step + 1 == kCompared) {
      std::ostringstream difference;
      difference << "trained, difference " << distance(net, trainedAlone());
      say(*ranks, difference.str());
    }
  }
}
