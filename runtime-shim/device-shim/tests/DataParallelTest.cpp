// DistributedDataParallel trains like one process with all the data.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>

using namespace device_shim;
using namespace training;
using ranks::Launch;

namespace {

constexpr int kSteps = 20;
constexpr int64_t kSamples = 32;

std::unique_ptr<torch::optim::Optimizer> optimizerFor(std::vector<torch::Tensor> parameters) {
  if (std::string(std::getenv("OPTIMIZER") ? std::getenv("OPTIMIZER") : "sgd") == "adamw")
    return std::make_unique<torch::optim::AdamW>(std::move(parameters), torch::optim::AdamWOptions(1e-2));
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(0.1).momentum(0.9));
}

Net referenceNet(int64_t seed = 1) {
  torch::manual_seed(seed);
  return Net();
}

} // namespace

RANK_WORKER(ddp_equals_one_process) {
  auto all = init_distributed();
  auto reference = referenceNet();
  // Every rank starts from other weights and gets those of rank 0.
  auto net = referenceNet(1 + all->rank());
  net->to(all->device());
  DataParallelOptions options;
  options.bucket_bytes = 150; // several buckets
  options.first_bucket_bytes = 100;
  DistributedDataParallel<Net> model(net, all, options);
  MUST(model.bucket_count() >= 3);
  MUST(distance(net->parameters(), reference->parameters()) == 0);
  auto one = optimizerFor(reference->parameters()), many = optimizerFor(net->parameters());
  for (int step = 0; step < kSteps; ++step) {
    const auto batch = batchOf(step, kSamples);
    one->zero_grad();
    loss(reference->forward(batch.input), batch).backward();
    one->step();
    const auto own = batch.part(all->rank(), all->size()).to(all->device());
    many->zero_grad();
    loss(model.forward(own.input), own).backward();
    many->step();
  }
  const auto difference = distance(net->parameters(), reference->parameters());
  std::cout << "largest difference " << difference << std::endl;
  MUST(difference < 1e-5);
}

TEST(DataParallel, EqualsOneProcess) {
  for (const int count : {2, 4})
    for (const auto *optimizer : {"sgd", "adamw"}) {
      Launch launch{"ddp_equals_one_process", count};
      launch.environment = {{"OPTIMIZER", optimizer}};
      std::cout << count << " ranks, " << optimizer << ": " << ranks::runAll(launch)[0].output;
    }
}

TEST(DataParallel, EqualsOneProcessOnVirtualGpus) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  for (const int count : {2, 4})
    ranks::runAll({"ddp_equals_one_process", count, count});
}

// Biases of 64 bytes and weights of 1024, the last first: {64 + 1024}, {64 + 1024 + 64}, {1024}.
RANK_WORKER(buckets_are_closed_when_full) {
  auto all = init_distributed();
  torch::nn::Sequential net;
  for (int layer = 0; layer < 3; ++layer)
    net->push_back(torch::nn::Linear(16, 16));
  DataParallelOptions options;
  options.first_bucket_bytes = 100;
  options.bucket_bytes = 1100;
  DistributedDataParallel<torch::nn::Sequential> model(net, all, options);
  MUST(model.bucket_count() == 3);
}

TEST(DataParallel, BucketsAreClosedWhenFull) { ranks::runAll({"buckets_are_closed_when_full", 2}); }

RANK_WORKER(ddp_adds_up_without_sync) {
  auto all = init_distributed();
  auto reference = referenceNet();
  auto net = referenceNet();
  DistributedDataParallel<Net> model(net, all);
  auto one = optimizerFor(reference->parameters()), many = optimizerFor(net->parameters());
  for (int step = 0; step < 5; ++step) {
    one->zero_grad();
    many->zero_grad();
    for (int micro = 0; micro < 3; ++micro) {
      const auto batch = batchOf(10 * step + micro, kSamples);
      loss(reference->forward(batch.input), batch).backward();
      const auto own = batch.part(all->rank(), all->size());
      if (micro < 2) {
        auto local = model.no_sync();
        loss(model.forward(own.input), own).backward();
      } else {
        loss(model.forward(own.input), own).backward();
      }
    }
    one->step();
    many->step();
  }
  MUST(distance(net->parameters(), reference->parameters()) < 1e-5);
  // Two averaged passes without zero_grad() add up, too.
  const auto batch = batchOf(0, kSamples), own = batch.part(all->rank(), all->size());
  one->zero_grad();
  many->zero_grad();
  for (int pass = 0; pass < 2; ++pass) {
    loss(reference->forward(batch.input), batch).backward();
    loss(model.forward(own.input), own).backward();
  }
  MUST(distance({net->first->weight.grad()}, {reference->first->weight.grad()}) < 1e-5);
}

TEST(DataParallel, NoSync) { ranks::runAll({"ddp_adds_up_without_sync", 2}); }

RANK_WORKER(ddp_gradients_are_views) {
  auto all = init_distributed();
  auto net = referenceNet();
  DistributedDataParallel<Net> model(net, all);
  MUST(model.bucket_count() == 1);
  const void *before = nullptr;
  for (int step = 0; step < 3; ++step) {
    if (step == 2)
      for (auto &parameter : net->parameters())
        parameter.mutable_grad() = torch::Tensor(); // zero_grad() of LibTorch 2
    const auto batch = batchOf(step, 8);
    loss(model.forward(batch.input), batch).backward();
    const auto weight = net->first->weight.grad(), bias = net->first->bias.grad();
    MUST(weight.storage().data() == bias.storage().data());
    MUST(before == nullptr || before == weight.data_ptr());
    before = weight.data_ptr();
  }
}

TEST(DataParallel, GradientsAreViewsOfTheBuckets) { ranks::runAll({"ddp_gradients_are_views", 2}); }

namespace {

struct BranchesImpl : torch::nn::Module {
  BranchesImpl() {
    for (const auto *name : {"zero", "one", "nobody"})
      branches.push_back(register_module(name, torch::nn::Linear(kWidth, kClasses)));
  }
  torch::Tensor forward(const torch::Tensor &x, int branch) { return branches[branch]->forward(x); }
  std::vector<torch::nn::Linear> branches;
};
TORCH_MODULE(Branches);

} // namespace

RANK_WORKER(ddp_unused_parameters) {
  auto all = init_distributed();
  torch::manual_seed(3);
  Branches net;
  DataParallelOptions options;
  options.find_unused_parameters = true;
  options.bucket_bytes = options.first_bucket_bytes = 64;
  DistributedDataParallel<Branches> model(net, all, options);
  const auto batch = batchOf(0, 8);
  for (int step = 0; step < 3; ++step) {
    loss(model.forward(batch.input, all->rank() == 0 ? 0 : 1), batch).backward();
    MUST(!net->branches[2]->weight.grad().defined());
    for (int branch = 0; branch < 2; ++branch) {
      auto copy = std::dynamic_pointer_cast<torch::nn::LinearImpl>(net->branches[branch]->clone());
      const double share = branch == 0 ? 1.0 / all->size() : 1.0 - 1.0 / all->size();
      (loss(copy->forward(batch.input), batch) * share * (step + 1)).backward();
      MUST(distance({net->branches[branch]->weight.grad()}, {copy->weight.grad()}) < 1e-5);
    }
  }
}

TEST(DataParallel, UnusedParameters) {
  ranks::runAll({"ddp_unused_parameters", 2});
  ranks::runAll({"ddp_unused_parameters", 4});
}

RANK_WORKER(ddp_unused_is_an_error) {
  auto all = init_distributed();
  Branches net;
  DistributedDataParallel<Branches> model(net, all);
  const auto batch = batchOf(0, 8);
  MUST_THROW(loss(model.forward(batch.input, 0), batch).backward(), UsageError, "one.bias, one.weight");
  all->barrier(); // a rank that leaves now would end the pass of another
}

TEST(DataParallel, UnusedParameterIsAnError) { ranks::runAll({"ddp_unused_is_an_error", 2}); }

RANK_WORKER(ddp_refuses) {
  auto all = init_distributed();
  Net net(all->rank() == 1 ? 24 : 16);
  net->to(all->device());
  using Wrapper = DistributedDataParallel<Net>;
  MUST_THROW(Wrapper(net, all), UsageError,
             all->rank() == 1 ? "'parameter first.weight [24, 12] Float' where rank 0 has"
                              : "different models");
  DataParallelOptions options;
  options.bucket_bytes = 100 + all->rank();
  Net same;
  same->to(all->device());
  MUST_THROW(Wrapper(same, all, options), UsageError,
             all->rank() == 1 ? "'bucket_bytes 101' where rank 0 has 'bucket_bytes 100'"
                              : "different options");
  if (!all->device().is_cuda())
    return;
  MUST_THROW(Wrapper(Net(), all), DeviceError, "call module->to(ranks->device())");
  Net elsewhere;
  elsewhere->to(torch::Device(torch::kCUDA, 1 - all->rank()));
  MUST_THROW(Wrapper(elsewhere, all), DeviceError, "not this rank's device");
}

TEST(DataParallel, Refuses) {
  ranks::runAll({"ddp_refuses", 2});
  if (ranks::haveVirtualGpus())
    ranks::runAll({"ddp_refuses", 2, 2});
}

namespace {

// Each rank has two devices of its own.
struct TwoDeviceNetImpl : torch::nn::Module {
  explicit TwoDeviceNetImpl(int rank)
      : a(torch::kCUDA, static_cast<c10::DeviceIndex>(rank)),
        b(torch::kCUDA, static_cast<c10::DeviceIndex>(rank + 2)) {
    first = register_module("first", torch::nn::Linear(kWidth, 8));
    second = register_module("second", torch::nn::Linear(8, kClasses));
    first->to(a);
    second->to(b);
  }
  torch::Tensor forward(const torch::Tensor &x) { return second->forward(first->forward(x.to(a)).to(b)); }
  torch::Device a, b;
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(TwoDeviceNet);

} // namespace

RANK_WORKER(ddp_two_devices_per_rank) {
  auto all = init_distributed();
  torch::manual_seed(5);
  TwoDeviceNet net(all->rank());
  DistributedDataParallel<TwoDeviceNet> model(net, all);
  MUST(model.bucket_count() == 2);
  const auto batch = batchOf(0, 16);
  auto own = batch.part(all->rank(), all->size());
  loss(model.forward(own.input), {own.input, own.target.to(net->b)}).backward();
  auto whole = torch::nn::functional::cross_entropy(net->forward(batch.input), batch.target.to(net->b));
  auto expected = torch::autograd::grad({whole}, {net->first->weight, net->second->bias});
  MUST(distance(expected, {net->first->weight.grad(), net->second->bias.grad()}) < 1e-6);
}

TEST(DataParallel, TwoDevicesPerRank) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({"ddp_two_devices_per_rank", 2, 4});
}

RANK_WORKER(ddp_recovers_from_a_failed_pass) {
  auto all = init_distributed();
  auto net = referenceNet();
  DistributedDataParallel<Net> model(net, all);
  const auto batch = batchOf(0, 8);
  auto output = model.forward(batch.input);
  net->first->weight.register_hook(
      [](torch::Tensor) -> torch::Tensor { throw std::runtime_error("midway"); });
  MUST_THROW(loss(output, batch).backward(), std::exception, "midway");
  all->barrier();
}

TEST(DataParallel, ErrorsOfBackwardArrive) { ranks::runAll({"ddp_recovers_from_a_failed_pass", 2}); }

namespace {

// As in language models: the head is the embedding's weight.
struct TiedNetImpl : torch::nn::Module {
  TiedNetImpl() {
    torch::manual_seed(3);
    embedding = register_module("embedding", torch::nn::Embedding(kClasses, kWidth));
    middle = register_module("middle", torch::nn::Linear(kWidth, kWidth));
    head = register_module("head", Projection(embedding->weight));
  }
  torch::Tensor forward(const torch::Tensor &ids) {
    return head->forward(torch::tanh(middle->forward(embedding->forward(ids))));
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear middle{nullptr};
  Projection head{nullptr};
};
TORCH_MODULE(TiedNet);

} // namespace

RANK_WORKER(ddp_tied_parameters) {
  auto all = init_distributed();
  TiedNet net, reference;
  DataParallelOptions options;
  options.bucket_bytes = options.first_bucket_bytes = 16; // the two uses would be in different buckets
  DistributedDataParallel<TiedNet> model(net, all, options);
  MUST(model.bucket_count() >= 3);
  for (int step = 0; step < 3; ++step) {
    const auto ids = batchOf(step, kSamples).target, targets = batchOf(step + 7, kSamples).target;
    const auto own = ids.chunk(all->size())[all->rank()];
    const Batch mine{own, targets.chunk(all->size())[all->rank()]};
    reference->zero_grad();
    loss(reference->forward(ids), Batch{ids, targets}).backward();
    net->zero_grad();
    loss(model.forward(own), mine).backward();
    for (const char *name : {"embedding.weight", "middle.weight", "middle.bias"})
      MUST(distance({net->named_parameters()[name].grad()}, {reference->named_parameters()[name].grad()}) <
           1e-6);
  }
}

TEST(DataParallel, TiedParametersHaveOnePlace) {
  ranks::runAll({"ddp_tied_parameters", 2});
  ranks::runAll({"ddp_tied_parameters", 4});
}

RANK_WORKER(ddp_unfrozen) {
  auto all = init_distributed();
  auto net = referenceNet();
  net->first->weight.set_requires_grad(false);
  DistributedDataParallel<Net> model(net, all);
  const auto batch = batchOf(0, 8);
  // Freezing for a while, as the discriminator of a GAN, is fine.
  for (auto &parameter : net->second->parameters())
    parameter.set_requires_grad(false);
  MUST_THROW(loss(model.forward(batch.input), batch).backward(), UsageError,
             "2 parameters got no gradient in this backward pass (second.bias, second.weight); 2 were frozen "
             "after DistributedDataParallel was made: make it again after freezing parameters");
  for (auto &parameter : net->second->parameters())
    parameter.set_requires_grad(true);
  loss(model.forward(batch.input), batch).backward();
  net->first->weight.set_requires_grad(true);
  MUST_THROW(model.forward(batch.input), UsageError, "parameter first.weight was frozen when");
}

TEST(DataParallel, UnfreezingIsRefused) { ranks::runAll({"ddp_unfrozen", 2}); }

// What was under way when an exception ended a pass must not reach the gradients of the next one.
RANK_WORKER(ddp_caught_exceptions) {
  auto all = init_distributed();
  GatedNet net, reference;
  DataParallelOptions options;
  options.bucket_bytes = options.first_bucket_bytes = 1000;
  DistributedDataParallel<GatedNet> model(net, all, options);
  const auto batch = batchOf(0, 8), own = batch.part(all->rank(), all->size());
  loss(reference->forward(batch.input), batch).backward();
  const auto expectRight = [&](const torch::Tensor &value) {
    value.backward();
    for (const char *name : {"first.weight", "second.weight", "third.weight", "third.bias"})
      MUST(distance({net->named_parameters()[name].grad()}, {reference->named_parameters()[name].grad()}) <
           1e-5);
  };
  for (int step = 0; step < 6; ++step) {
    net->zero_grad(); // in place with LibTorch 1.13
    auto failing = loss(model.forward(own.input), own), next = loss(model.forward(own.input), own);
    if (step % 2 == 0) {
      Gate::closed = true;
      MUST_THROW(failing.backward(), std::runtime_error, "the gate is closed");
      Gate::closed = false;
    } else { // a parameter without gradient
      const auto inside = torch::ones({4, 600});
      auto part = net->third->forward(net->second->forward(inside)).sum();
      MUST_THROW(part.backward(), UsageError, "parameters got no gradient");
    }
    net->zero_grad();
    expectRight(step < 3 ? next : loss(model.forward(own.input), own));
  }
}

TEST(DataParallel, GoesOnAfterCaughtExceptions) { ranks::runAll({"ddp_caught_exceptions", 2}); }

RANK_WORKER(ddp_sparse_gradient) {
  auto all = init_distributed();
  torch::nn::Sequential net{torch::nn::Embedding(torch::nn::EmbeddingOptions(8, 4).sparse(true))};
  DistributedDataParallel<torch::nn::Sequential> model(net, all);
  MUST_THROW(model.forward(torch::zeros({2}, torch::kLong)).sum().backward(), UsageError,
             "that of parameter 0.weight is sparse; make the embedding layer with sparse(false)");
}

TEST(DataParallel, SparseGradientsAreRefused) { ranks::runAll({"ddp_sparse_gradient", 2}); }

// Several forward passes before one backward(), as with a discriminator or with pairs: the running statistics
// of the ranks differ, and those of rank 0 come before each forward pass.
RANK_WORKER(ddp_two_forward_passes) {
  auto all = init_distributed();
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(kWidth, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 2));
  DistributedDataParallel<torch::nn::Sequential> model(net, all);
  for (int step = 0; step < 3; ++step) {
    auto own = batchOf(2 * step + all->rank(), 8).input;
    auto sum = model.forward(own).sum() + model.forward(own + 1).square().sum();
    sum.backward();
  }
  // In evaluation mode backward() needs the statistics.
  net->eval();
  (model.forward(torch::ones({2, kWidth})).sum() + model.forward(torch::ones({2, kWidth})).sum()).backward();
}

TEST(DataParallel, ForwardTwiceWithBatchNorm) { ranks::runAll({"ddp_two_forward_passes", 2}); }
