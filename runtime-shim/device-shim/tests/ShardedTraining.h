// A model of stages, trained by one process or by all ranks with ShardedDataParallel.
#pragma once

#include "Training.h"

#include <device_shim/Communicator.h>
#include <device_shim/ShardedDataParallel.h>

#include <functional>
#include <memory>

namespace training {

using device_shim::Communicator;
using device_shim::ShardedOptions;
using device_shim::Stage;
using torch::nn::Linear;

struct TowerImpl : torch::nn::Module {
  explicit TowerImpl(int seed = 1) {
    torch::manual_seed(seed);
    for (int i = 0; i < 3; ++i)
      layers.push_back(register_module("h" + std::to_string(i), Stage<Linear>(kWidth, kWidth)));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &layer : layers)
      x = torch::tanh(layer->forward(x));
    return extra ? extra->forward(x) : x;
  }
  std::vector<Stage<Linear>> layers;
  Linear extra{nullptr};
};
TORCH_MODULE(Tower);
using Sharded = device_shim::ShardedDataParallel<Tower>;

inline ShardedOptions ofStage(int stage, bool half = false, bool offload = false) {
  ShardedOptions options;
  options.stage = stage;
  options.offload_optimizer = offload;
  if (half)
    options.parameter_type = torch::kBFloat16;
  return options;
}

/// A model that is trained by one process, or by all ranks.
struct Trained {
  Trained(const std::shared_ptr<Communicator> &all, const ShardedOptions *options, int seed = 1)
      : ranks(all), net(seed) {
    if (options)
      model = std::make_unique<Sharded>(net, ranks, *options);
    optimizer = std::make_unique<torch::optim::SGD>(model ? model->optimizer_parameters() : net->parameters(),
                                                    torch::optim::SGDOptions(0.2).momentum(0.9));
  }
  torch::Tensor batch(int step) const {
    const auto whole = batchOf(step, 4 * ranks->size());
    return model ? whole.part(ranks->rank(), ranks->size()).input : whole.input;
  }
  torch::Tensor forward(const torch::Tensor &x) { return model ? model->forward(x) : net->forward(x); }
  torch::Tensor lossOf(int step) { return forward(batch(step)).square().mean(); }
  torch::Tensor answer() {
    torch::NoGradGuard noGrad;
    return forward(torch::ones({2, kWidth}));
  }

  std::shared_ptr<Communicator> ranks;
  Tower net;
  std::unique_ptr<Sharded> model;
  std::unique_ptr<torch::optim::SGD> optimizer;
};

using Program = std::function<void(Trained &)>;

inline double difference(const std::shared_ptr<Communicator> &all, const ShardedOptions &options,
                         const Program &program) {
  Trained one(all, nullptr), many(all, &options);
  program(one);
  program(many);
  return distance({one.answer()}, {many.answer()});
}

} // namespace training
