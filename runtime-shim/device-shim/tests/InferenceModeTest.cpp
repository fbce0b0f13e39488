// c10::InferenceMode, LibTorch's guard for evaluations, in between steps of a training.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
using Sharded = ShardedDataParallel<Sequential>;

namespace {

Sequential plainNet() {
  torch::manual_seed(1);
  return Sequential(Linear(kWidth, 8), torch::nn::BatchNorm1d(8), Linear(8, kClasses));
}

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

ShardedOptions wantedOptions() {
  ShardedOptions options;
  options.stage = std::stoi(variable("STAGE"));
  options.offload_optimizer = !variable("OFFLOAD").empty();
  if (!variable("TYPE").empty())
    options.parameter_type = torch::kBFloat16;
  return options;
}

} // namespace

// The tensors of a caller who is in the mode, or is not.
RANK_WORKER(inference_collectives) {
  auto all = init_distributed();
  const auto options = torch::TensorOptions().device(all->device());
  const auto check = [&](const torch::Tensor &whole, const torch::Tensor &part) {
    part.fill_(all->rank());
    all->all_gather(whole, part);
    MUST(whole[0].item<float>() == 0 && whole[whole.numel() - 1].item<float>() == 1);
    all->reduce_scatter(part, whole);
    MUST(part[0].item<float>() == 2 * all->rank());
    all->all_reduce(part);
    MUST(part[0].item<float>() == 2);
    part.fill_(all->rank());
    all->broadcast(part, 1);
    MUST(part[0].item<float>() == 1);
    all->broadcast(std::vector<torch::Tensor>{part, whole});
    all->reduce_number(1, Reduction::sum);
    MUST(all->broadcast_text("text") == "text");
  };
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    auto whole = torch::zeros({6}, options.dtype(type)), part = torch::zeros({3}, options.dtype(type));
    c10::InferenceMode guard;
    check(whole, part);
    check(torch::zeros({6}, options.dtype(type)), torch::zeros({3}, options.dtype(type)));
    check(torch::zeros({8}, options.dtype(type)).narrow(0, 2, 6), torch::zeros({3}, options.dtype(type)));
  }
  auto flags = torch::ones({2}, options.dtype(torch::kBool));
  all->all_reduce(flags);
}

TEST(InferenceMode, Collectives) {
  ranks::runAll({"inference_collectives", 2});
  if (ranks::haveVirtualGpus())
    ranks::runAll({"inference_collectives", 2, 2});
}

RANK_WORKER(inference_between_steps) {
  auto all = init_distributed();
  Sharded watched(plainNet(), all, wantedOptions()), undisturbed(plainNet(), all, wantedOptions());
  torch::optim::AdamW a(watched.optimizer_parameters(), 1e-2), b(undisturbed.optimizer_parameters(), 1e-2);
  const auto throughFile = [](Sharded &model, torch::optim::Optimizer &optimizer) {
    model.save(variable("FOLDER") + "/model.pt", &optimizer);
    model.load(variable("FOLDER") + "/model.pt", &optimizer);
  };
  const auto evaluate = [&](Sharded &model, const torch::Tensor &input) {
    model.module()->eval();
    auto output = model.forward(input).to(torch::kFloat);
    model.module()->train();
    return output;
  };
  for (int step = 0; step < 4; ++step) {
    const auto own = batchOf(step, 32).part(all->rank(), all->size()).to(all->device());
    {
      c10::InferenceMode guard;
      evaluate(watched, own.input);
      if (step == 2)
        throughFile(watched, a);
    }
    all->barrier();
    if (step == 2)
      throughFile(undisturbed, b);
    for (const auto &[model, optimizer] : {std::make_pair(&watched, &a), std::make_pair(&undisturbed, &b)}) {
      optimizer->zero_grad();
      loss(model->forward(own.input).to(torch::kFloat), own).backward();
      if (step == 1 && model == &watched) {
        c10::InferenceMode guard;
        evaluate(watched, own.input);
        model->unscale_and_clip_grads(1e3);
      }
      optimizer->step();
    }
    torch::NoGradGuard noGrad;
    MUST(evaluate(watched, own.input).equal(evaluate(undisturbed, own.input)));
  }
}

TEST(InferenceMode, BetweenStepsOfShardedTraining) {
  const auto run = [](std::map<std::string, std::string> environment, int gpus = -1) {
    environment["FOLDER"] = ranks::temporaryDirectory();
    ranks::runAll({"inference_between_steps", 2, gpus, environment});
  };
  for (const char *stage : {"2", "3"}) {
    run({{"STAGE", stage}});
    run({{"STAGE", stage}, {"TYPE", "bfloat16"}});
    if (ranks::haveVirtualGpus())
      run({{"STAGE", stage}, {"OFFLOAD", "optimizer"}}, 2);
  }
}

RANK_WORKER(inference_data_parallel) {
  auto all = init_distributed();
  auto net = plainNet();
  DistributedDataParallel<Sequential> model(net, all);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    const auto own = batchOf(step, 32).part(all->rank(), all->size());
    loss(model.forward(own.input), own).backward();
    optimizer.step();
    c10::InferenceMode guard;
    model.forward(own.input);
  }
}

TEST(InferenceMode, BetweenStepsOfDataParallelTraining) { ranks::runAll({"inference_data_parallel", 2}); }
