// What ShardedDataParallel refuses where it went wrong in silence, and unusual stages, parameters and
// adapters.
#include "ShardedTraining.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>
#include <device_shim/GradScaler.h>
#include <device_shim/Lora.h>

using namespace device_shim;
using namespace training;

RANK_WORKER(limits_adapters) {
  auto all = init_distributed();
  const auto file = ranks::temporaryDirectory() + "/adapters";
  LoraLinear net(kWidth, kWidth), reference(kWidth, kWidth);
  {
    torch::NoGradGuard noGrad;
    auto from = net->named_parameters();
    for (auto &entry : reference->named_parameters())
      entry.value().copy_(from[entry.key()]);
  }
  train_only_adapters(*net);
  ShardedDataParallel<LoraLinear> model(net, all, ofStage(2));
  torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
  net->merge(); // nothing was trained
  net->unmerge();
  model.forward(torch::ones({2, kWidth})).sum().backward();
  optimizer.step();
  MUST_THROW(net->merge(), UsageError, "Call synchronize() of the wrapper first, on all ranks");
  MUST_THROW(save_adapters(*net, file), UsageError, "may have values from before the last step");
  model.synchronize();
  save_adapters(*net, file);
  const auto plain = net->forward(torch::ones({2, kWidth}));
  net->merge();
  MUST(distance({net->forward(torch::ones({2, kWidth}))}, {plain}) < 1e-5);
}

TEST(ShardedLimits, AdaptersFollowFirst) { ranks::runAll({"limits_adapters", 2}); }

RANK_WORKER(limits_wrapper_ended) {
  auto all = init_distributed();
  for (const int stage : {2, 3}) {
    const auto options = ofStage(stage);
    Trained trained(all, &options);
    auto loss = trained.lossOf(0);
    trained.model.reset();
    MUST_THROW(loss.backward(), UsageError, "was destroyed before backward()");
    // The optimizer of the wrapper before.
    trained.net = Tower();
    trained.model = std::make_unique<Sharded>(trained.net, all, options);
    trained.lossOf(0).backward();
    GradScaler scaler;
    MUST_THROW(scaler.step(*trained.optimizer), UsageError, "of a ShardedDataParallel that has ended");
    for (const auto &part : trained.optimizer->param_groups()[0].params())
      part.grad().zero_(); // newer versions of zero_grad() would drop them
    MUST_THROW(trained.optimizer->step(), c10::Error, "size of tensor");
    trained.optimizer = std::make_unique<torch::optim::SGD>(trained.model->optimizer_parameters(), 0.1);
    MUST(scaler.step(*trained.optimizer));
  }
}

TEST(ShardedLimits, WrapperEnded) { ranks::runAll({"limits_wrapper_ended", 2}); }

RANK_WORKER(limits_lbfgs) {
  auto all = init_distributed();
  for (const int stage : {2, 3}) {
    const auto options = ofStage(stage);
    Trained trained(all, &options);
    torch::optim::LBFGS optimizer(trained.model->optimizer_parameters(), 0.1);
    GradScaler scaler;
    scaler.scale(trained.lossOf(0)).backward();
    MUST_THROW(scaler.step(optimizer), UsageError, "LBFGS cannot work on the partitions");
  }
}

TEST(ShardedLimits, LbfgsIsRefused) { ranks::runAll({"limits_lbfgs", 2}); }

namespace {

struct TableImpl : torch::nn::Module {
  explicit TableImpl(bool whole) : asItIs(whole) {
    table = register_parameter("table", torch::ones({4, kWidth}));
  }
  torch::Tensor forward(const torch::Tensor &) { return asItIs ? table : table.narrow(0, 0, 2); }
  bool asItIs;
  torch::Tensor table;
};
TORCH_MODULE(Table);

struct PositionsImpl : torch::nn::Module {
  explicit PositionsImpl(bool whole) {
    positions = register_module("positions", Stage<Table>(whole));
    layer = register_module("layer", Stage<Linear>(kWidth, kWidth));
    empty = register_parameter("empty", torch::empty({0}));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    return layer->forward(x.unsqueeze(1) + positions->forward(x));
  }
  Stage<Table> positions{nullptr};
  Stage<Linear> layer{nullptr};
  torch::Tensor empty;
};
TORCH_MODULE(Positions);

struct OnlyStagesImpl : torch::nn::Module {
  explicit OnlyStagesImpl(bool whole) { positions = register_module("positions", Stage<Table>(whole)); }
  torch::Tensor forward(const torch::Tensor &x) { return x.unsqueeze(1) + positions->forward(x); }
  Stage<Table> positions{nullptr};
};
TORCH_MODULE(OnlyStages);

} // namespace

RANK_WORKER(limits_returned_parameter) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth});
  for (const bool whole : {false, true}) {
    ShardedDataParallel<OnlyStages> model(OnlyStages(whole), all, ofStage(3));
    MUST_THROW(model.forward(input), UsageError,
               "stage 'positions' returned its parameter positions.module.table");
    ShardedDataParallel<Positions> kept(Positions(whole), all, ofStage(2));
    kept.forward(input).sum().backward();
  }
}

TEST(ShardedLimits, ReturnedParametersAreRefused) { ranks::runAll({"limits_returned_parameter", 2}); }

namespace {

struct PassingImpl : torch::nn::Module {
  PassingImpl() { weight = register_parameter("weight", torch::ones({kWidth})); }
  torch::Tensor forward(const torch::Tensor &x) { return x; }
  torch::Tensor weight;
};
TORCH_MODULE(Passing);

torch::nn::Sequential passing() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Identity(), Passing(), Linear(kWidth, kWidth),
                               Linear(kWidth, kWidth));
}

} // namespace

// Stages that return their input, of which the program wants the gradient.
RANK_WORKER(limits_returned_input) {
  auto all = init_distributed();
  auto reference = passing();
  ShardedDataParallel<torch::nn::Sequential> model(passing(), all);
  auto x = torch::ones({2, kWidth}, torch::requires_grad()), y = x.detach().clone().set_requires_grad(true);
  for (int pass = 0; pass < 2; ++pass) {
    model.forward(x).square().sum().backward();
    reference->forward(y).square().sum().backward();
  }
  MUST(distance({x.grad()}, {y.grad()}) < 1e-4);
  const double expected = torch::nn::utils::clip_grad_norm_(reference->parameters(), 1e9);
  MUST(std::abs(model.grad_norm() - expected) < 1e-4 * expected);
}

TEST(ShardedLimits, ReturnedInputs) { ranks::runAll({"limits_returned_input", 2}); }

RANK_WORKER(limits_empty_parameter) {
  auto all = init_distributed();
  Positions net(false);
  auto options = ofStage(2, /*half=*/true);
  ShardedDataParallel<Positions> model(net, all, options);
  MUST(net->empty.device() == all->device() && net->empty.scalar_type() == torch::kBFloat16);
  model.forward(torch::ones({2, kWidth}, all->device())).sum().backward();
}

TEST(ShardedLimits, EmptyParametersMove) {
  ranks::runAll({"limits_empty_parameter", 2});
  if (ranks::haveVirtualGpus())
    ranks::runAll({"limits_empty_parameter", 2, 2});
}
