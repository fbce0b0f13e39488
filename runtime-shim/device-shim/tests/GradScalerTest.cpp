// One scaler for several optimizers, and for parameters of which every rank sees a part.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>
#include <device_shim/GradScaler.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;

namespace {

struct TwoOptimizers {
  torch::Tensor p = torch::ones({1}, torch::requires_grad()), q = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD a{{p}, 1.0}, b{{q}, 1.0};
  GradScaler scaler;

  void backward(double gradientOfP, double gradientOfQ) {
    p.mutable_grad() = q.mutable_grad() = torch::Tensor();
    scaler.scale((p * gradientOfP + q * gradientOfQ).sum()).backward();
  }
};

} // namespace

TEST(GradScaler, EveryOptimizerIsUnscaled) {
  TwoOptimizers two;
  two.backward(0.5, 0.25);
  EXPECT_TRUE(two.scaler.step(two.a));
  EXPECT_TRUE(two.scaler.step(two.b));
  EXPECT_FLOAT_EQ(two.p.item<float>(), 0.5);
  EXPECT_FLOAT_EQ(two.q.item<float>(), 0.75);
  EXPECT_THROW(two.scaler.step(two.a), UsageError);
  EXPECT_THROW(two.scaler.unscale_(two.a), UsageError);
  two.scaler.update();
  two.backward(0.5, 0.25);
  two.scaler.unscale_(two.b);
  EXPECT_TRUE(two.scaler.step(two.a));
  EXPECT_TRUE(two.scaler.step(two.b));
  EXPECT_FLOAT_EQ(two.p.item<float>(), 0);
  EXPECT_FLOAT_EQ(two.q.item<float>(), 0.5);
}

TEST(GradScaler, OnlyTheOptimizerThatOverflowedIsSkipped) {
  TwoOptimizers two;
  const double scale = two.scaler.scale();
  two.backward(0.5, INFINITY);
  EXPECT_TRUE(two.scaler.step(two.a));
  EXPECT_FALSE(two.scaler.step(two.b));
  EXPECT_FLOAT_EQ(two.q.item<float>(), 1);
  EXPECT_TRUE(two.scaler.found_infinite());
  two.scaler.update();
  EXPECT_FLOAT_EQ(two.scaler.scale(), scale / 2);
}

TEST(GradScaler, ListsOfParameters) {
  TwoOptimizers two;
  two.backward(0.5, 0.25);
  two.scaler.unscale_({two.p, two.p}); // as parameters() lists a tied one
  EXPECT_FLOAT_EQ(two.p.grad().item<float>(), 0.5);
  torch::optim::SGD both({two.p, two.q}, 1.0);
  EXPECT_TRUE(two.scaler.step(both));
  EXPECT_FLOAT_EQ(two.p.item<float>(), 0.5);
  EXPECT_FLOAT_EQ(two.q.item<float>(), 0.75);
  GradScalerOptions off;
  off.enabled = false;
  GradScaler disabled(off);
  for (int step = 0; step < 2; ++step)
    EXPECT_TRUE(disabled.step(two.a));
}

TEST(GradScaler, OptionsAndStatesAreChecked) {
  const double no = NAN, endless = INFINITY;
  const auto refused = [](double scale, double growth, double backoff) {
    GradScalerOptions options;
    options.initial_scale = scale;
    options.growth_factor = growth;
    options.backoff_factor = backoff;
    EXPECT_THROW(GradScaler{options}, UsageError) << scale << " " << growth << " " << backoff;
  };
  for (const double bad : {no, endless, -1.0, 0.0})
    refused(bad, 2, 0.5);
  for (const double bad : {no, endless, 0.5})
    refused(8, bad, 0.5);
  for (const double bad : {no, 2.0, 0.0})
    refused(8, 2, bad);
  GradScaler scaler;
  EXPECT_THROW(scaler.load_state({}), UsageError);
  EXPECT_THROW(scaler.load_state({no, 0}), UsageError);
  EXPECT_THROW(scaler.load_state({8, -1}), UsageError);
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.load_state({8, 1});
  EXPECT_EQ(scaler.scale(), 8);
}

TEST(GradScaler, HalfGradientsAreRefused) {
  auto half = torch::ones({1}, torch::kHalf).requires_grad_();
  half.mutable_grad() = torch::full({1}, 6e-8, torch::kHalf);
  torch::optim::SGD optimizer({half}, 0.1);
  GradScaler scaler;
  EXPECT_THROW(scaler.unscale_(optimizer), UsageError);
  EXPECT_GT(half.grad().item<float>(), 0);
}

// The gradient overflows in the part of the last rank only.
RANK_WORKER(scaler_with_partitions) {
  auto all = init_distributed();
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(torch::nn::LinearOptions(1, 8).bias(false)));
  ShardedDataParallel<torch::nn::Sequential> model(net, all);
  torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
  GradScaler scaler;
  for (int step = 0; step < 4; ++step) {
    auto factors = torch::ones({8});
    if (step % 2 == 0)
      factors[7] = INFINITY;
    const auto before = model.optimizer_parameters()[0].detach().clone();
    const double scale = scaler.scale();
    optimizer.zero_grad();
    scaler.scale((model.forward(torch::ones({1, 1})) * factors).sum()).backward();
    MUST(scaler.step(optimizer) == (step % 2 == 1));
    scaler.update();
    MUST((scaler.scale() < scale) == (step % 2 == 0));
    MUST(before.equal(model.optimizer_parameters()[0].detach()) == (step % 2 == 0));
  }
}

TEST(GradScaler, RanksDecideTogether) { ranks::runAll({"scaler_with_partitions", 2}); }
