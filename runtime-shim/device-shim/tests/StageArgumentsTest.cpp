// What stages write into their arguments is the caller's, with and without a wrapper.
#include "Training.h"

#include <device_shim/DispatchModel.h>
#include <device_shim/Distributed.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;

namespace {

/// Adds its output to a list, as a cache of keys and values.
struct CachingImpl : torch::nn::Module {
  CachingImpl() { layer = register_module("layer", torch::nn::Linear(kWidth, kWidth)); }
  torch::Tensor forward(torch::Tensor x, std::vector<torch::Tensor> &cache, int &calls) {
    ++calls;
    if (!cache.empty())
      x = x + cache.back();
    cache.push_back(torch::tanh(layer->forward(x)));
    return cache.back() * 2;
  }
  torch::nn::Linear layer{nullptr};
};
TORCH_MODULE(Caching);

/// Replaces its state.
struct RecurrentImpl : torch::nn::Module {
  RecurrentImpl() { layer = register_module("layer", torch::nn::Linear(kWidth, kWidth)); }
  torch::Tensor forward(const torch::Tensor &x, torch::Tensor &state) {
    if (failing)
      throw std::runtime_error("in the stage");
    state = torch::tanh(layer->forward(x) + state);
    return state * 2;
  }
  torch::nn::Linear layer{nullptr};
  bool failing = false;
};
TORCH_MODULE(Recurrent);

/// Writes into a table in place.
struct CountingImpl : torch::nn::Module {
  CountingImpl() { layer = register_module("layer", torch::nn::Linear(kWidth, kWidth)); }
  torch::Tensor forward(const torch::Tensor &x, torch::Tensor table, const torch::Tensor &same) {
    auto y = torch::tanh(layer->forward(x + table.detach().clone() + same.detach().clone()));
    torch::NoGradGuard noGrad;
    table.narrow(0, 0, 2).add_(y.mean());
    return y;
  }
  torch::nn::Linear layer{nullptr};
};
TORCH_MODULE(Counting);

struct RecallingNetImpl : torch::nn::Module {
  RecallingNetImpl() {
    torch::manual_seed(1);
    caching = register_module("caching", Stage<Caching>());
    recurrent = register_module("recurrent", Stage<Recurrent>());
    counting = register_module("counting", Stage<Counting>());
    last = register_module("last", Stage<torch::nn::Linear>(kWidth, kClasses));
  }
  torch::Tensor forward(torch::Tensor x) {
    std::vector<torch::Tensor> cache;
    auto state = torch::zeros_like(x), table = torch::zeros({kWidth}, x.options());
    const auto *tableBefore = table.unsafeGetTensorImpl();
    int calls = 0;
    for (int time = 0; time < 3; ++time) {
      x = caching->forward(x, cache, calls);
      x = recurrent->forward(x, state);
      x = x + state.to(x.device());
      x = counting->forward(x, table, table);
    }
    MUST(calls == 3 && cache.size() == 3);
    MUST(table.unsafeGetTensorImpl() == tableBefore);
    auto sum = x;
    for (const auto &each : cache)
      sum = sum + each.to(x.device());
    return last->forward(sum);
  }
  Stage<Caching> caching{nullptr};
  Stage<Recurrent> recurrent{nullptr};
  Stage<Counting> counting{nullptr};
  Stage<torch::nn::Linear> last{nullptr};
};
TORCH_MODULE(RecallingNet);

DeviceMap overTwoDevices() {
  const torch::Device first(torch::kCUDA, 0), second(torch::kCUDA, 1);
  return DeviceMap({{"caching", first}, {"recurrent", second}, {"counting", second}, {"last", first}});
}

} // namespace

RANK_WORKER(stage_arguments_dispatched) {
  RecallingNet net, reference;
  auto model = dispatch_model(net, overTwoDevices());
  const auto batch = batchOf(0, 8);
  const auto input = batch.input.to(torch::Device(torch::kCUDA, 0));
  for (int pass = 0; pass < 2; ++pass) {
    loss(reference->forward(batch.input), batch).backward();
    loss(model.forward(input), batch.to(model.output_device())).backward();
  }
  for (size_t i = 0; i < net->parameters().size(); ++i)
    MUST(distance({net->parameters()[i].grad()}, {reference->parameters()[i].grad()}) < 1e-5);
  const auto expected = reference->forward(batch.input).detach();
  {
    torch::NoGradGuard noGrad;
    MUST(distance({model.forward(input)}, {expected}) < 1e-6);
  }
  {
    c10::InferenceMode inference;
    MUST(distance({model.forward(batch.input.to(input.device()))}, {expected}) < 1e-6);
  }
  // Only what the stage writes changes, also where it fails.
  auto state = torch::zeros({8, kWidth}, input.device());
  const auto before = state;
  net->recurrent->module->failing = true;
  MUST_THROW(net->recurrent->forward(input, state), std::runtime_error, "in the stage");
  MUST(state.is_same(before));
  std::vector<torch::Tensor> cache{torch::zeros({8, kWidth})};
  const auto first = cache[0];
  int calls = 0;
  net->caching->forward(input, cache, calls);
  MUST(cache.size() == 2 && cache[0].is_same(first) && cache[1].device() == input.device());
}

TEST(StageArguments, WrittenOnOtherDevices) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({"stage_arguments_dispatched", 1, 2});
}

// Layers that work in place write into what only they see.
RANK_WORKER(stage_arguments_in_place) {
  using namespace torch::nn;
  const auto device = torch::Device(torch::kCUDA, 0);
  const auto make = [] {
    torch::manual_seed(1);
    return Sequential(Linear(kWidth, 8), ReLU(ReLUOptions(true)), Tanh(), ReLU(ReLUOptions(true)),
                      Linear(8, 2));
  };
  auto net = make(), reference = make();
  auto model = dispatch_model(
      net, DeviceMap({{"0", device}, {"1", torch::Device(torch::kCUDA, 1)}, {"2", device}, {"", device}}));
  auto input = batchOf(0, 8).input;
  auto leaf = input.to(device).set_requires_grad(true);
  {
    torch::NoGradGuard noGrad;
    MUST(distance({model.forward(leaf)}, {reference->forward(input)}) < 1e-6);
  }
  Sequential beginning{ReLU(ReLUOptions(true)), Linear(kWidth, 2)};
  auto other = dispatch_model(beginning, DeviceMap({{"", torch::Device(torch::kCUDA, 1)}}));
  other.forward(leaf).sum().backward(); // moved, so that it is no leaf in the stage
  auto written = leaf.detach().clone();
  other.forward(written);
  MUST(distance({written}, {torch::relu(leaf)}) == 0);
}

TEST(StageArguments, LayersInPlace) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({"stage_arguments_in_place", 1, 2});
}

// With stage 3 autograd comes to a stage through what it wrote, too.
RANK_WORKER(stage_arguments_sharded) {
  auto all = init_distributed();
  RecallingNet net, reference;
  ShardedDataParallel<RecallingNet> model(net, all);
  torch::optim::SGD one(reference->parameters(), 0.1), many(model.optimizer_parameters(), 0.1);
  for (int step = 0; step < 5; ++step) {
    const auto batch = batchOf(0, 8); // the same on all ranks: the table follows the whole batch
    one.zero_grad();
    many.zero_grad();
    loss(reference->forward(batch.input), batch).backward();
    loss(model.forward(batch.input), batch).backward();
    one.step();
    many.step();
  }
  torch::NoGradGuard noGrad;
  const auto input = batchOf(5, 8).input;
  MUST(distance({model.forward(input)}, {reference->forward(input)}) < 1e-5);
}

TEST(StageArguments, WrittenInShardedModels) { ranks::runAll({"stage_arguments_sharded", 2}); }
