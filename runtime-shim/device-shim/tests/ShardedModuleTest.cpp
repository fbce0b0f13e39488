// Programs that go on using the module after ShardedDataParallel was made, or step at unusual times: the
// results are those of one process, or an error says what to do.
#include "ShardedTraining.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>

using namespace device_shim;
using namespace training;

// LibTorch's own examples clear the gradients of the module.
RANK_WORKER(module_zero_grad) {
  auto all = init_distributed();
  for (const auto &options : {ofStage(2), ofStage(3), ofStage(2, false, true)}) {
    for (const bool none : {false, true})
      for (const bool late : {false, true})
        MUST(difference(all, options, [&](Trained &trained) {
               for (int step = 0; step < 5; ++step) {
                 if (!late)
                   trained.net->zero_grad(none);
                 auto loss = trained.lossOf(step);
                 if (late)
                   trained.net->zero_grad(none);
                 loss.backward();
                 trained.optimizer->step();
               }
             }) < 1e-5);
    // A part of the module, which is not that of a rank.
    MUST(difference(all, options, [&](Trained &trained) {
           for (int step = 0; step < 5; ++step) {
             trained.net->layers[step % 3]->zero_grad();
             trained.lossOf(step).backward();
             trained.optimizer->step();
           }
         }) < 1e-5);
    // Sums that are not cleared, and an optimizer that clears them.
    MUST(difference(all, options, [&](Trained &trained) {
           for (int step = 0; step < 6; ++step) {
             trained.lossOf(step).backward();
             if (step % 3 < 2)
               continue;
             trained.optimizer->step();
             trained.optimizer->zero_grad();
           }
         }) < 1e-5);
    Trained trained(all, &options);
    trained.lossOf(0).backward();
    MUST(trained.model->grad_norm() > 0);
    trained.net->zero_grad();
    MUST(trained.model->grad_norm() == 0);
    trained.lossOf(0).backward();
    trained.net->zero_grad(/*set_to_none=*/true);
    for (auto &layer : trained.net->layers)
      layer->zero_grad(/*set_to_none=*/true);
    trained.model->grad_norm();
    for (auto &parameter : trained.net->parameters())
      parameter.mutable_grad() = torch::Tensor();
    trained.model->grad_norm();
    for (const auto &master : trained.model->optimizer_parameters())
      MUST(!master.grad().defined());
  }
}

TEST(ShardedModule, ZeroGrad) { ranks::runAll({"module_zero_grad", 2}); }

RANK_WORKER(module_changed_gradients) {
  auto all = init_distributed();
  for (const int stage : {2, 3}) {
    const auto options = ofStage(stage);
    const std::vector<std::function<void(torch::Tensor)>> changes = {
        [](torch::Tensor gradient) { gradient.data().clamp_(-1, 1); },
        [](torch::Tensor gradient) { gradient.mul_(0.5); },
    };
    for (const auto &change : changes) {
      Trained trained(all, &options);
      trained.lossOf(0).backward();
      change(trained.net->parameters()[0].grad());
      MUST_THROW(trained.lossOf(1), UsageError,
                 "the gradient of parameter h0.module.weight was changed, but");
      trained.lossOf(1).backward(); // it is gone
    }
    Trained trained(all, &options);
    trained.lossOf(0).backward();
    MUST(std::isnan(torch::nn::utils::clip_grad_norm_(trained.net->parameters(), 1)));
    MUST_THROW(trained.model->grad_norm(), UsageError, "clip them with unscale_and_clip_grads()");
    // The module has none when the wrapper ends.
    trained.lossOf(0).backward();
    trained.optimizer.reset();
    trained.model.reset();
    for (const auto &parameter : trained.net->parameters())
      MUST(!parameter.grad().defined());
  }
}

TEST(ShardedModule, ChangedGradientsAreRefused) { ranks::runAll({"module_changed_gradients", 2}); }

// Gradients from before the model was sharded count until they are cleared.
RANK_WORKER(module_earlier_gradients) {
  auto all = init_distributed();
  for (const auto &options : {ofStage(2), ofStage(3), ofStage(2, true, true)}) {
    const auto input = torch::full({2, kWidth}, 0.3), other = torch::full({2, kWidth}, 0.6);
    const auto norm = [](Tower &net) { return torch::nn::utils::clip_grad_norm_(net->parameters(), 1e9); };
    Tower reference;
    reference->forward(input).sum().backward();
    const double early = norm(reference);
    reference->forward(other).sum().backward();
    const double both = norm(reference);
    reference->zero_grad();
    reference->forward(other).sum().backward();
    const double late = norm(reference);
    for (const char *how : {"keep", "module", "optimizer"}) {
      Tower net;
      if (all->rank() == 0) // the average is that of a pass on all
        net->forward(input).sum().mul(all->size()).backward();
      Sharded model(net, all, options);
      torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
      MUST(std::abs(model.grad_norm() - early) < 1e-2 * early);
      if (how == std::string("module"))
        net->zero_grad();
      if (how == std::string("optimizer"))
        optimizer.zero_grad();
      model.forward(other).sum().backward();
      const double expected = how == std::string("keep") ? both : late;
      MUST(std::abs(model.grad_norm() - expected) < 1e-2 * expected);
    }
  }
}

TEST(ShardedModule, EarlierGradients) { ranks::runAll({"module_earlier_gradients", 2}); }

// Without the wrapper's forward() nobody gathers the parameters of stage 2.
RANK_WORKER(module_own_forward) {
  auto all = init_distributed();
  const auto ownForward = [](bool half) {
    return [half](Trained &trained) {
      for (int step = 0; step < 5; ++step) {
        trained.optimizer->zero_grad();
        for (int part = 0; part < 2; ++part) {
          const auto x = trained.batch(2 * step + part);
          trained.net->forward(trained.model && half ? x.to(torch::kBFloat16) : x).square().mean().backward();
        }
        trained.optimizer->step();
      }
    };
  };
  MUST(difference(all, ofStage(3), ownForward(false)) < 1e-5);
  MUST(difference(all, ofStage(3, /*half=*/true), ownForward(true)) < 2e-2);
  for (const auto &options : {ofStage(2), ofStage(2, true), ofStage(2, false, true)}) {
    Trained trained(all, &options);
    const auto x = trained.batch(0).to(options.parameter_type.value_or(torch::kFloat));
    const auto backward = [&] { trained.net->forward(x).square().mean().backward(); };
    backward();
    backward(); // no step was between
    trained.optimizer->step();
    MUST_THROW(backward(), UsageError, "Call forward() of the wrapper, not of the module");
    trained.lossOf(1).backward();
    trained.optimizer->step();
    trained.model->synchronize();
    backward();
    trained.optimizer->step();
    trained.model->begin_forward();
    backward();
    backward();
  }
}

TEST(ShardedModule, OwnForward) { ranks::runAll({"module_own_forward", 2}); }

// In one process autograd goes on with the new parameters: LibTorch's optimizers work through data().
RANK_WORKER(module_step_between) {
  auto all = init_distributed();
  const auto step = [](Trained &trained) {
    trained.optimizer->step();
    trained.optimizer->zero_grad();
  };
  for (const auto &options : {ofStage(2), ofStage(3)}) {
    MUST(difference(all, options, [&](Trained &trained) {
           for (int i = 0; i < 4; ++i) {
             auto first = trained.lossOf(2 * i), second = trained.lossOf(2 * i + 1);
             first.backward();
             step(trained);
             second.backward();
             step(trained);
           }
         }) < 1e-5);
    MUST(difference(all, options, [&](Trained &trained) {
           for (int i = 0; i < 4; ++i) {
             auto loss = trained.lossOf(i);
             loss.backward({}, /*retain_graph=*/true);
             step(trained);
             loss.backward();
             step(trained);
           }
         }) < 1e-5);
    // The step of a discriminator between a generator's way through it and back.
    const auto adversarial = [&](const ShardedOptions *sharded) {
      Trained generator(all, sharded), judge(all, sharded, 2);
      for (int i = 0; i < 4; ++i) {
        auto fake = generator.forward(generator.batch(i));
        auto judged = judge.forward(fake).square().mean();
        judge.net->zero_grad();
        (judge.forward(judge.batch(i + 50)) - judge.forward(fake.detach())).mean().backward();
        judge.optimizer->step();
        generator.optimizer->zero_grad();
        judged.backward();
        generator.optimizer->step();
      }
      return torch::cat({generator.answer(), judge.answer()});
    };
    MUST(distance({adversarial(nullptr)}, {adversarial(&options)}) < 1e-5);
  }
  // A graph that did not come from a result.
  const auto options = ofStage(2);
  Trained trained(all, &options);
  trained.model->begin_forward();
  auto first = trained.net->forward(trained.batch(0)).sum(),
       second = trained.net->forward(trained.batch(1)).sum();
  first.backward();
  trained.optimizer->step();
  MUST_THROW(second.backward(), UsageError, "and not through results of it");
}

TEST(ShardedModule, StepBetweenForwardAndBackward) { ranks::runAll({"module_step_between", 2}); }

// A rank may look at gradients of chosen tensors alone.
RANK_WORKER(module_chosen_gradients) {
  auto all = init_distributed();
  const auto options = ofStage(2);
  Trained trained(all, &options);
  const auto x = trained.batch(0).clone().set_requires_grad(true);
  const auto output = trained.forward(x);
  output.square().mean().backward({}, /*retain_graph=*/true);
  if (all->rank() == 0)
    MUST(torch::autograd::grad({output.sum()}, {x}, {}, true)[0].sizes() == x.sizes());
  output.sum().backward();
}

TEST(ShardedModule, ChosenGradientsOnOneRank) { ranks::runAll({"module_chosen_gradients", 2}); }

// Modules that come after the wrapper belong to no partition.
RANK_WORKER(module_added) {
  auto all = init_distributed();
  const std::string reason =
      "extra.weight was added, or its module replaced, after ShardedDataParallel was made";
  for (const int stage : {2, 3}) {
    const auto options = ofStage(stage);
    Trained trained(all, &options);
    trained.lossOf(0).backward();
    trained.net->extra = trained.net->register_module("extra", Linear(kWidth, kWidth));
    MUST_THROW(trained.lossOf(1), UsageError, reason);
    MUST_THROW(trained.net->forward(trained.batch(1)).sum().backward(), UsageError, reason);
    trained.answer(); // learns nothing
    for (auto &parameter : trained.net->extra->parameters())
      parameter.set_requires_grad(false);
    trained.lossOf(1).backward();
  }
}

TEST(ShardedModule, AddedModulesAreRefused) { ranks::runAll({"module_added", 2}); }

// The gradients that the partitions have lead nowhere.
RANK_WORKER(module_gradients_of_gradients) {
  auto all = init_distributed();
  const auto options = ofStage(2);
  Trained trained(all, &options);
  auto loss = trained.lossOf(0);
  loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  auto penalty = loss;
  for (const auto &parameter : trained.net->parameters())
    penalty = penalty + parameter.grad().sum();
  MUST_THROW(penalty.backward(), UsageError, "a loss uses the gradient of parameter h");
  // One on the gradients by the inputs is that of one process.
  for (const bool byBackward : {false, true})
    MUST(difference(all, options, [&](Trained &each) {
           for (int step = 0; step < 3; ++step) {
             each.optimizer->zero_grad();
             auto x = each.batch(step).clone().set_requires_grad(true);
             const auto output = each.forward(x);
             torch::Tensor slope;
             if (byBackward) {
               output.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
               slope = x.grad();
               for (auto &parameter : each.net->parameters())
                 parameter.mutable_grad() = torch::Tensor();
             } else {
               slope = torch::autograd::grad({output.sum()}, {x}, {}, true, /*create_graph=*/true)[0];
             }
             (output.square().mean() + (slope.norm(2, 1) - 1).square().mean()).backward();
             each.optimizer->step();
           }
         }) < 1e-5);
}

TEST(ShardedModule, GradientsOfGradients) { ranks::runAll({"module_gradients_of_gradients", 2}); }
