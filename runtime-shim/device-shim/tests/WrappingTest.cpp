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
