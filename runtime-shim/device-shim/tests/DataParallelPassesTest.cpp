// What training loops do with DistributedDataParallel between backward passes: guards kept in variables,
// gradients kept or dropped, gradients of gradients, several models.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>

#include <optional>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
using Parallel = DistributedDataParallel<Sequential>;
using NoSync = DataParallelCore::NoSync;

namespace {

Sequential plainNet() {
  torch::manual_seed(1);
  return Sequential(Linear(kWidth, 8), torch::nn::Tanh(), Linear(8, kClasses));
}

std::vector<torch::Tensor> takeGradients(Sequential &net) {
  std::vector<torch::Tensor> gradients;
  for (auto &parameter : net->parameters()) {
    gradients.push_back(parameter.grad());
    parameter.mutable_grad() = torch::Tensor();
  }
  return gradients;
}

std::vector<torch::Tensor> gradientsOf(const Sequential &net) {
  std::vector<torch::Tensor> gradients;
  for (const auto &parameter : net->parameters())
    gradients.push_back(parameter.grad());
  return gradients;
}

} // namespace

// In C++ a guard that not every pass has is kept in a pointer, and the new one is made before the old one
// ends.
RANK_WORKER(ddp_guard_reassigned) {
  auto all = init_distributed();
  auto net = plainNet(), reference = plainNet();
  Parallel model(net, all);
  std::unique_ptr<NoSync> guard;
  for (int step = 0; step < 2; ++step) {
    for (int micro = 0; micro < 3; ++micro) {
      if (micro < 2)
        guard = std::make_unique<NoSync>(model.no_sync());
      else
        guard.reset();
      const auto batch = batchOf(3 * step + micro, 8), own = batch.part(all->rank(), all->size());
      loss(reference->forward(batch.input), batch).backward();
      loss(model.forward(own.input), own).backward();
    }
    MUST(distance(gradientsOf(net), gradientsOf(reference)) < 1e-6);
  }
  // Within one another.
  std::optional<NoSync> inOptional;
  inOptional = model.no_sync();
  inOptional = model.no_sync();
  inOptional.reset();
  auto outer = std::make_unique<NoSync>(model.no_sync()), inner = std::make_unique<NoSync>(model.no_sync());
  inner.reset();
  const auto own = batchOf(7, 8).part(all->rank(), all->size());
  const auto before = net->parameters()[0].grad().clone();
  loss(model.forward(own.input), own).backward();
  auto added = net->parameters()[0].grad() - before, sum = added.clone();
  all->all_reduce(sum);
  MUST(!sum.allclose(added * all->size()));
}

TEST(DataParallel, GuardsMayOverlap) { ranks::runAll({"ddp_guard_reassigned", 2}); }

// Two losses, the gradients of the first kept: as they are, in parts, or with another shape.
RANK_WORKER(ddp_gradients_kept) {
  auto all = init_distributed();
  auto net = plainNet(), reference = plainNet();
  DataParallelOptions options;
  options.find_unused_parameters = std::getenv("UNUSED") != nullptr;
  options.bucket_bytes = options.first_bucket_bytes = 250; // several buckets
  Parallel model(net, all, options);
  for (int step = 0; step < 4; ++step) {
    const auto batch = batchOf(step, 8), own = batch.part(all->rank(), all->size());
    auto value = model.forward(own.input), expected = reference->forward(batch.input);
    loss(value, own).backward({}, true);
    loss(expected, batch).backward({}, true);
    std::vector<torch::Tensor> kept, expectedKept = takeGradients(reference);
    if (step % 2 == 0) {
      kept = takeGradients(net);
    } else {
      for (auto &gradient : takeGradients(net))
        kept.push_back(gradient.detach().view(gradient.sizes()));
    }
    value.abs().mean().backward();
    expected.abs().mean().backward();
    MUST(distance(kept, expectedKept) < 1e-6);
    MUST(distance(gradientsOf(net), gradientsOf(reference)) < 1e-6);
    if (step == 3)
      continue; // the gradients of the last pass stay
    takeGradients(net);
    takeGradients(reference);
  }
  // Some of the gradients only; the others go on adding up.
  const auto batch = batchOf(9, 8), own = batch.part(all->rank(), all->size());
  const auto taken = net->parameters()[1].grad(), expected = reference->parameters()[1].grad();
  net->parameters()[1].mutable_grad() = reference->parameters()[1].mutable_grad() = torch::Tensor();
  loss(model.forward(own.input), own).backward();
  loss(reference->forward(batch.input), batch).backward();
  MUST(distance({taken}, {expected}) < 1e-6);
  MUST(distance(gradientsOf(net), gradientsOf(reference)) < 1e-6);
  // Gradients that got other memory.
  for (auto *of : {&net, &reference})
    for (auto &parameter : (*of)->parameters())
      parameter.mutable_grad().set_data(parameter.grad() * 0.5);
  for (int pass = 0; pass < 2; ++pass) {
    loss(model.forward(own.input), own).backward();
    loss(reference->forward(batch.input), batch).backward();
    MUST(distance(gradientsOf(net), gradientsOf(reference)) < 1e-6);
  }
}

// Gradients that a program holds while the parameters have them are those of the parameters, also where
// others are written over.
RANK_WORKER(ddp_gradients_held) {
  auto all = init_distributed();
  auto net = plainNet();
  DataParallelOptions options;
  options.find_unused_parameters = true;
  Parallel model(net, all, options);
  const auto own = batchOf(0, 8).part(all->rank(), all->size());
  auto last = [&] { return net->at<torch::nn::LinearImpl>(2).forward(torch::ones({4, 8})).square().mean(); };
  model.forward(own.input);
  last().backward(); // the first layer has none
  const auto held = net->parameters()[2].grad();
  MUST(held.defined() && !net->parameters()[0].grad().defined());
  for (int step = 0; step < 3; ++step) {
    if (step == 1)
      loss(model.forward(own.input), own).backward();
    else
      last().backward();
    if (step == 1)
      net->parameters()[0].mutable_grad() = torch::Tensor();
    MUST(held.is_same(net->parameters()[2].grad()));
  }
}

TEST(DataParallel, GradientsThatAreHeldFollow) { ranks::runAll({"ddp_gradients_held", 2}); }

TEST(DataParallel, GradientsThatAreKeptStay) {
  ranks::runAll({"ddp_gradients_kept", 2});
  ranks::runAll({"ddp_gradients_kept", 2, -1, {{"UNUSED", "1"}}});
}

// A penalty on gradients by the input is right; one on the averaged gradients of parameters would be lost.
RANK_WORKER(ddp_create_graph) {
  auto all = init_distributed();
  auto net = plainNet(), reference = plainNet();
  Parallel model(net, all);
  const auto train = [&](Sequential &of, const torch::Tensor &part, auto forward) {
    auto input = part.detach().clone().set_requires_grad(true);
    auto output = forward(input).square().mean();
    output.backward({}, true, true); // of the input, too
    auto slope = input.grad();
    takeGradients(of);
    (output + slope.square().sum() * input.size(0)).backward();
  };
  const auto batch = batchOf(1, 8);
  const auto own = batch.part(all->rank(), all->size()).input;
  train(net, own, [&](const torch::Tensor &x) { return model.forward(x); });
  train(reference, batch.input, [&](const torch::Tensor &x) { return reference->forward(x); });
  MUST(distance(gradientsOf(net), gradientsOf(reference)) < 1e-5);
  // What optimizers and loops do with such gradients.
  auto output = model.forward(own).square().mean();
  output.backward({}, true, true);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  optimizer.step();
  const auto penalty = net->parameters()[0].grad().square().sum();
  MUST_THROW((output + penalty).backward(), UsageError,
             "a loss uses the gradient of parameter 0.weight that a backward pass with create_graph=true");
  net->zero_grad(/*set_to_none=*/false);
  (output + 0 * net->parameters()[0].grad().detach().sum()).backward();
  optimizer.zero_grad();
  loss(model.forward(own), batchOf(1, 8).part(all->rank(), all->size())).backward();
}

TEST(DataParallel, PenaltiesOnGradients) { ranks::runAll({"ddp_create_graph", 2}); }

// What was added up on this rank and dropped again is no gradient.
RANK_WORKER(ddp_dropped_without_sync) {
  auto all = init_distributed();
  const auto own = batchOf(0, 8).part(all->rank(), all->size());
  for (const bool unused : {true, false}) {
    auto net = plainNet();
    DataParallelOptions options;
    options.find_unused_parameters = unused;
    Parallel model(net, all, options);
    {
      auto local = model.no_sync();
      loss(model.forward(own.input), own).backward();
    }
    takeGradients(net);
    model.forward(own.input);
    auto last = net->at<torch::nn::LinearImpl>(2).forward(torch::ones({4, 8})).square().mean();
    if (!unused) {
      MUST_THROW(last.backward(), UsageError, "2 parameters got no gradient");
      continue;
    }
    last.backward();
    MUST(!net->parameters()[0].grad().defined() && !net->parameters()[1].grad().defined());
    MUST(net->parameters()[2].grad().defined());
  }
}

TEST(DataParallel, DroppedGradientsAreNone) { ranks::runAll({"ddp_dropped_without_sync", 2}); }

// The ranks chain two models in different order, so that their gradients come in different order.
RANK_WORKER(ddp_two_models) {
  auto all = init_distributed();
  const auto layer = [&](int seed) {
    torch::manual_seed(seed);
    Sequential net(Linear(kWidth, kWidth));
    net->to(all->device());
    return net;
  };
  auto first = layer(1), second = layer(2);
  const auto chained = [&](int rank, auto &a, auto &b) {
    const auto input = batchOf(rank, 4).input.to(all->device());
    return (rank % 2 == 0 ? a->forward(b->forward(input)) : b->forward(a->forward(input))).square().mean();
  };
  auto one = layer(1), other = layer(2);
  ((chained(0, one, other) + chained(1, one, other)) / 2).backward();
  auto a = std::make_unique<Parallel>(first, all), b = std::make_unique<Parallel>(second, all);
  chained(all->rank(), a, b).backward();
  MUST(distance(gradientsOf(first), gradientsOf(one)) < 1e-6);
  MUST(distance(gradientsOf(second), gradientsOf(other)) < 1e-6);
}

TEST(DataParallel, TwoModelsInAnyOrder) {
  ranks::runAll({"ddp_two_models", 2});
  if (ranks::haveVirtualGpus())
    ranks::runAll({"ddp_two_models", 2, 2});
}

// The ranks would not average what comes after the wrapper.
RANK_WORKER(ddp_ends_before_backward) {
  auto all = init_distributed();
  auto net = plainNet();
  const auto own = batchOf(0, 8).part(all->rank(), all->size());
  const auto result = [&] {
    Parallel model(net, all);
    return loss(model.forward(own.input), own);
  };
  MUST_THROW(result().backward(), UsageError, "was destroyed before backward()");
  MUST(torch::autograd::grad({result()}, {net->parameters()[0]})[0].defined()); // of which none is averaged
  loss(net->forward(own.input), own).backward(); // the module is its owner's again
}

TEST(DataParallel, EndsBeforeBackward) { ranks::runAll({"ddp_ends_before_backward", 2}); }
