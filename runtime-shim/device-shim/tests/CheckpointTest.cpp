// load() of a sharded model: all ranks or none, and the optimizer's state where it belongs.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
using Sharded = ShardedDataParallel<Sequential>;

namespace {

std::string folder() { return std::getenv("FOLDER"); }
std::string file() { return folder() + "/model.pt"; }

ShardedOptions wantedOptions() {
  ShardedOptions options;
  options.stage = std::getenv("STAGE") ? std::stoi(std::getenv("STAGE")) : 3;
  options.group = [](const std::string &name, const torch::Tensor &) {
    return name.find("bias") != std::string::npos ? 1 : 0;
  };
  return options;
}

Sequential plainNet(int seed = 1) {
  torch::manual_seed(seed);
  return Sequential(Linear(kWidth, 8), Linear(8, kClasses));
}

void run(const char *worker, std::map<std::string, std::string> environment = {}) {
  environment["FOLDER"] = ranks::temporaryDirectory();
  ranks::runAll({worker, 2, -1, environment});
}

void takeStep(Sharded &model, torch::optim::Optimizer &optimizer) {
  optimizer.zero_grad();
  model.forward(torch::ones({2, kWidth})).square().mean().backward();
  optimizer.step();
}

// What all ranks have together, on every one.
torch::Tensor weightsOf(Sharded &model, Communicator &all) {
  torch::NoGradGuard noGrad;
  auto output = model.forward(torch::eye(kWidth));
  auto largest = output.clone();
  all.all_reduce(largest, Reduction::maximum);
  MUST(largest.equal(output));
  return output;
}

// With the learning rates in `rates`, and the parameters of the library's groups in `order`.
std::unique_ptr<torch::optim::SGD> groupedSgd(ShardedCore &model, std::vector<int> order,
                                              std::vector<double> rates) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (size_t i = 0; i < order.size(); ++i)
    groups.emplace_back(model.optimizer_parameters(order[i]),
                        std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(rates[i])));
  return std::make_unique<torch::optim::SGD>(std::move(groups), torch::optim::SGDOptions(1));
}

} // namespace

// A node without the shared folder, say; programs go on from the beginning then.
RANK_WORKER(checkpoint_on_one_rank) {
  auto all = init_distributed();
  Sharded model(plainNet(1), all, wantedOptions()), other(plainNet(2), all, wantedOptions());
  torch::optim::Adam adam(model.optimizer_parameters(), 0.1), fresh(other.optimizer_parameters(), 0.1);
  takeStep(model, adam);
  model.save(file(), &adam);
  const auto before = weightsOf(other, *all);
  const bool here = all->rank() == 0;
  const std::string lost = folder() + "/nowhere.pt";
  const auto load = [&](torch::optim::Optimizer &optimizer) { other.load(here ? file() : lost, &optimizer); };
  if (here)
    MUST_THROW(load(fresh), Error,
               "rank 1 could not load, so no rank has loaded anything: rank 1 cannot read '");
  else
    MUST_THROW(load(fresh), Error, "rank 1 cannot read '" + lost);
  MUST(weightsOf(other, *all).equal(before));
  MUST(fresh.state().empty());
  // Another mistake of one rank.
  torch::optim::SGD sgd(other.optimizer_parameters(), 0.1);
  torch::optim::Optimizer &odd = here ? static_cast<torch::optim::Optimizer &>(fresh) : sgd;
  if (here)
    MUST_THROW(other.load(file(), &odd), Error, "rank 1 could not load");
  else
    MUST_THROW(other.load(file(), &odd), UsageError, "this optimizer is 'sgd'");
  MUST(weightsOf(other, *all).equal(before));
  takeStep(other, fresh); // training goes on
  other.load(file(), &fresh);
  MUST(weightsOf(other, *all).equal(weightsOf(model, *all)));
}

// A node with a folder of its own, with an older file in it.
RANK_WORKER(checkpoint_of_two_steps) {
  auto all = init_distributed();
  Sharded model(plainNet(1), all, wantedOptions());
  torch::optim::Adam adam(model.optimizer_parameters(), 0.1);
  const auto older = folder() + "/older.pt";
  model.save(older, &adam);
  takeStep(model, adam);
  model.save(file(), &adam);
  takeStep(model, adam);
  const auto before = weightsOf(model, *all);
  MUST_THROW(model.load(all->rank() == 0 ? file() : older, &adam), Error,
             "has other parameters on rank 1 than on rank 0, so no rank has loaded anything");
  MUST(weightsOf(model, *all).equal(before));
  model.load(file(), &adam);
}

TEST(Checkpoint, RanksWithOtherFiles) {
  run("checkpoint_of_two_steps", {{"STAGE", "2"}});
  run("checkpoint_of_two_steps", {{"STAGE", "3"}});
}

TEST(Checkpoint, AllRanksLoadOrNone) {
  run("checkpoint_on_one_rank", {{"STAGE", "2"}});
  run("checkpoint_on_one_rank", {{"STAGE", "3"}});
}

RANK_WORKER(checkpoint_of_groups) {
  auto all = init_distributed();
  Sharded model(plainNet(), all, wantedOptions());
  // Not 0.001, SGD's default: newer releases take it for a rate that was not said.
  const auto two = groupedSgd(model, {0, 1}, {0.1, 0.002}), again = groupedSgd(model, {0, 1}, {0.5, 0.5}),
             swapped = groupedSgd(model, {1, 0}, {0.5, 0.5}), weights = groupedSgd(model, {0}, {0.5});
  torch::optim::SGD one(model.optimizer_parameters(), 0.5);
  takeStep(model, *two);
  model.save(file(), two.get());
  MUST_THROW(model.load(file(), &one), UsageError, "with 2 parameter groups, but this one has 1");
  MUST_THROW(model.load(file(), swapped.get()), UsageError, "of the optimizer, but here it is in group");
  model.load(file(), again.get());
  MUST(again->param_groups()[0].options().get_lr() == 0.1);
  MUST(again->param_groups()[1].options().get_lr() == 0.002);
  all->barrier();
  // What the file does not know may be in any group.
  model.save(file(), weights.get());
  model.load(file(), &one);
  all->barrier();
}

TEST(Checkpoint, GroupsAreThoseOfTheFile) { run("checkpoint_of_groups"); }

RANK_WORKER(checkpoint_of_other_options) {
  auto all = init_distributed();
  Sharded model(plainNet(), all, wantedOptions());
  const auto parameters = model.optimizer_parameters();
  const auto goesOn = [&](torch::optim::Optimizer &saved, torch::optim::Optimizer &wider) {
    takeStep(model, saved);
    model.save(file(), &saved);
    model.load(file(), &wider);
    takeStep(model, wider);
    MUST(weightsOf(model, *all).isfinite().all().item<bool>());
  };
  torch::optim::AdamW adamw(parameters, 0.1),
      amsgradw(parameters, torch::optim::AdamWOptions(0.1).amsgrad(true));
  goesOn(adamw, amsgradw);
  torch::optim::Adam adam(parameters, 0.1), amsgrad(parameters, torch::optim::AdamOptions(0.1).amsgrad(true));
  goesOn(adam, amsgrad);
  torch::optim::RMSprop plain(parameters, 0.1),
      centered(parameters, torch::optim::RMSpropOptions(0.1).centered(true).momentum(0.9));
  goesOn(plain, centered);
}

TEST(Checkpoint, StateThatTheFileLacksBeginsAtZero) { run("checkpoint_of_other_options"); }
