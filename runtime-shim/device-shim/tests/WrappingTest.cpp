// What wrappers refuse when they are made.
#include "Training.h"

#include <device_shim/DispatchModel.h>
#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
using Parallel = DistributedDataParallel<Sequential>;
using Sharded = ShardedDataParallel<Sequential>;

namespace {

Sequential plainNet() { return Sequential(Linear(kWidth, 8), Linear(8, kClasses)); }

ShardedOptions ofStage(int stage) {
  ShardedOptions options;
  options.stage = stage;
  return options;
}

const char *const kOnce = "belongs to a wrapper already, of ";

} // namespace

RANK_WORKER(wrapping_twice) {
  auto all = init_distributed();
  const DeviceMap here({{"", torch::Device(torch::kCPU)}});
  for (const int stage : {2, 3}) {
    auto net = plainNet();
    Sharded model(net, all, ofStage(stage));
    for (const int second : {2, 3})
      MUST_THROW(Sharded(net, all, ofStage(second)), UsageError, std::string(kOnce) + "ShardedDataParallel");
    MUST_THROW(Parallel(net, all), UsageError, kOnce);
    MUST_THROW(dispatch_model(net, here), UsageError, kOnce);
    model.forward(torch::ones({2, kWidth})).sum().backward();
    MUST(model.grad_norm() > 0);
  }
  auto net = plainNet();
  {
    Parallel model(net, all);
    MUST_THROW(Parallel(net, all), UsageError, std::string(kOnce) + "DistributedDataParallel");
    MUST_THROW(Sharded(net, all), UsageError, kOnce);
  }
  {
    Parallel again(net, all);
  } // the first has ended
  {
    auto dispatched = dispatch_model(net, here);
    auto moved = std::move(dispatched);
    MUST_THROW(dispatch_model(net, here), UsageError, std::string(kOnce) + "dispatch_model");
    MUST_THROW(Sharded(net, all), UsageError, kOnce);
    Parallel on(net, all);
  }
  {
    Sharded third(net, all);
  }
  MUST_THROW(Sharded(net, all), UsageError, "as ShardedDataParallel with stage 3 leaves them");
}

// A feature extractor that two models use and none trains.
RANK_WORKER(wrapping_shared_frozen) {
  auto all = init_distributed();
  Linear shared(kWidth, 8);
  for (auto &parameter : shared->parameters())
    parameter.set_requires_grad(false);
  Sequential first(shared, Linear(8, 2)), second(shared, Linear(8, 3));
  const auto input = torch::ones({2, kWidth});
  Parallel one(first, all);
  {
    Parallel other(second, all);
    one.forward(input).sum().backward();
    other.forward(input).sum().backward();
    MUST_THROW(Sharded(second, all), UsageError, kOnce);
  }
  MUST_THROW(Sharded(second, all), UsageError, kOnce); // still of the first
  for (auto &parameter : shared->parameters())
    parameter.set_requires_grad(true);
  MUST_THROW(Parallel(second, all), UsageError, kOnce);
  MUST_THROW(one.forward(input), UsageError, "parameter 0.bias was frozen when");
}

TEST(Wrapping, FrozenParametersMayBeShared) { ranks::runAll({"wrapping_shared_frozen", 2}); }
TEST(Wrapping, OnceForEachModel) { ranks::runAll({"wrapping_twice", 2}); }

RANK_WORKER(wrapping_nothing) {
  auto all = init_distributed();
  using Pointer = std::shared_ptr<torch::nn::SequentialImpl>;
  const Pointer none;
  MUST_THROW(Parallel(plainNet(), nullptr), UsageError, "got no communicator");
  MUST_THROW(DistributedDataParallel<Pointer>(none, all), UsageError, "got no module");
  MUST_THROW(Sharded(plainNet(), nullptr), UsageError, "got no communicator");
  MUST_THROW(ShardedDataParallel<Pointer>(none, all), UsageError, "got no module");
  MUST_THROW(dispatch_model(none), UsageError, "is null");
}

RANK_WORKER(wrapping_with_odd_options) {
  auto all = init_distributed();
  DataParallelOptions parallel;
  parallel.bucket_bytes = 0;
  MUST_THROW(Parallel(plainNet(), all, parallel), UsageError, "must be at least 1, not 0 and");
  auto sharded = ofStage(2);
  sharded.bucket_bytes = -1;
  MUST_THROW(Sharded(plainNet(), all, sharded), UsageError, "bucket_bytes must be at least 1, not -1");
  for (const auto type : {torch::kLong, torch::kDouble}) {
    auto options = ofStage(3);
    options.parameter_type = type;
    MUST_THROW(Sharded(plainNet(), all, options), UsageError, "models compute in kHalf, kBFloat16 or kFloat");
  }
}

TEST(Wrapping, NullPointersAreRefused) { ranks::runAll({"wrapping_nothing", 2}); }
TEST(Wrapping, OddOptionsAreRefused) { ranks::runAll({"wrapping_with_odd_options", 2}); }

RANK_WORKER(wrapping_before_it_is_whole) {
  auto all = init_distributed();
  auto net = plainNet();
  {
    Sharded model(net, all, ofStage(3));
    net->push_back(torch::nn::Identity());
    MUST_THROW(model.forward(torch::ones({2, kWidth})), UsageError,
               "child 2 of the Sequential was added or replaced after");
    for (int i = 0; i < 4; ++i)
      net->push_back(Linear(kClasses, kClasses));
    MUST_THROW(model.forward(torch::ones({2, kWidth})), UsageError,
               "parameter 3.weight was added, or its module replaced, after");
  }
  net = plainNet();
  auto model = dispatch_model(net, DeviceMap({{"", torch::Device(torch::kCPU)}}));
  model.forward(torch::ones({2, kWidth}));
  net->push_back(Linear(kClasses, kClasses));
  MUST_THROW(model.forward(torch::ones({2, kWidth})), UsageError, "child 2 of the Sequential was added");
}

namespace {

// Two stages with one weight, and statistics.
struct TiedNetImpl : torch::nn::Module {
  TiedNetImpl() {
    norm = register_module("norm", Stage<torch::nn::BatchNorm1d>(kWidth));
    first =
        register_module("first", Stage<Projection>(torch::ones({kWidth, kWidth}, torch::requires_grad())));
    second = register_module("second", Stage<Projection>(first->module->weight));
  }
  torch::Tensor forward(const torch::Tensor &x) { return second->forward(first->forward(norm->forward(x))); }
  Stage<torch::nn::BatchNorm1d> norm{nullptr};
  Stage<Projection> first{nullptr}, second{nullptr};
};
TORCH_MODULE(TiedNet);

// One stage under two names.
struct SharedStageNetImpl : torch::nn::Module {
  SharedStageNetImpl() {
    torch::manual_seed(1);
    first = register_module("first", Stage<Linear>(kWidth, kWidth));
    second = register_module("second", Stage<Linear>(kWidth, kWidth));
    register_module("again", first);
  }
  torch::Tensor forward(const torch::Tensor &x) {
    return first->forward(torch::tanh(second->forward(torch::tanh(first->forward(x)))));
  }
  Stage<Linear> first{nullptr}, second{nullptr};
};
TORCH_MODULE(SharedStageNet);

} // namespace

// A wrapper that refuses a model leaves it for another one.
RANK_WORKER(wrapping_refused) {
  auto all = init_distributed();
  TiedNet net;
  auto options = ofStage(3);
  options.parameter_type = torch::kBFloat16;
  MUST_THROW(ShardedDataParallel<TiedNet>(net, all, options), UsageError, "of another stage");
  for (const auto &buffer : net->buffers())
    MUST(!buffer.is_floating_point() || buffer.scalar_type() == torch::kFloat);
  DistributedDataParallel<TiedNet> model(net, all);
  model.forward(torch::ones({2, kWidth})).sum().backward();
}

RANK_WORKER(wrapping_stage_of_two_names) {
  auto all = init_distributed();
  SharedStageNet net, reference, loaded;
  const auto &first = reference->first->module, &second = reference->second->module;
  torch::optim::SGD one({first->weight, first->bias, second->weight, second->bias}, 0.1);
  ShardedDataParallel<SharedStageNet> model(net, all, ofStage(3));
  torch::optim::SGD many(model.optimizer_parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    const auto batch = batchOf(step, 8), own = batch.part(all->rank(), all->size());
    one.zero_grad();
    reference->forward(batch.input).square().mean().backward();
    one.step();
    many.zero_grad();
    model.forward(own.input).square().mean().backward();
    many.step();
  }
  const std::string path = std::getenv("STATE");
  model.save(path);
  all->barrier();
  torch::load(loaded, path);
  MUST(distance(loaded->parameters(), reference->parameters()) < 1e-5);
}

TEST(Wrapping, ChildrenAddedLater) { ranks::runAll({"wrapping_before_it_is_whole", 2}); }
TEST(Wrapping, RefusedModelsStayAsTheyWere) { ranks::runAll({"wrapping_refused", 2}); }
TEST(Wrapping, StagesOfTwoNames) {
  ranks::runAll(
      {"wrapping_stage_of_two_names", 2, -1, {{"STATE", ranks::temporaryDirectory() + "/shared_stage.pt"}}});
}
