// Backward passes within backward passes, of layers that are computed again rather than kept.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>

using namespace device_shim;
using namespace training;

namespace {

// Computes a layer again in backward() rather than keep what it made, as checkpointing does.
struct Recomputed : torch::autograd::Function<Recomputed> {
  static torch::Tensor forward(torch::autograd::AutogradContext *context, torch::Tensor x,
                               torch::nn::Linear *layer) {
    context->save_for_backward({x});
    context->saved_data["layer"] = reinterpret_cast<int64_t>(layer);
    torch::NoGradGuard noGrad;
    return torch::tanh((*layer)->forward(x));
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext *context,
                                               torch::autograd::tensor_list gradients) {
    auto *layer = reinterpret_cast<torch::nn::Linear *>(context->saved_data["layer"].toInt());
    torch::AutoGradMode grad(true);
    auto x = context->get_saved_variables()[0].detach().requires_grad_();
    torch::tanh((*layer)->forward(x)).backward(gradients[0]);
    return {x.grad(), torch::Tensor()};
  }
};

// Which of its three layers are computed again.
struct CheckpointedNetImpl : torch::nn::Module {
  explicit CheckpointedNetImpl(std::vector<bool> ofLayers) : again(std::move(ofLayers)) {
    torch::manual_seed(1);
    for (int i = 0; i < 3; ++i)
      layers.push_back(register_module(std::string(1, static_cast<char>('a' + i)),
                                       torch::nn::Linear(kWidth, i == 2 ? kClasses : kWidth)));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = x.clone().requires_grad_();
    for (size_t i = 0; i < layers.size(); ++i)
      x = again[i] ? Recomputed::apply(x, &layers[i]) : torch::tanh(layers[i]->forward(x));
    return x;
  }
  std::vector<torch::nn::Linear> layers;
  std::vector<bool> again;
};
TORCH_MODULE(CheckpointedNet);

} // namespace

RANK_WORKER(ddp_recomputation) {
  auto all = init_distributed();
  for (const auto &again : std::vector<std::vector<bool>>{{false, false, true},
                                                          {false, true, false},
                                                          {true, false, false},
                                                          {true, false, true},
                                                          {true, true, true}})
    for (const bool unused : {false, true}) {
      CheckpointedNet reference(std::vector<bool>(3)), net(again);
      net->to(all->device());
      DataParallelOptions options;
      options.bucket_bytes = options.first_bucket_bytes = 300;
      options.find_unused_parameters = unused;
      DistributedDataParallel<CheckpointedNet> model(net, all, options);
      torch::optim::SGD one(reference->parameters(), 0.1), many(net->parameters(), 0.1);
      for (int step = 0; step < 3; ++step) {
        const auto batch = batchOf(step, 8), own = batch.part(all->rank(), all->size()).to(all->device());
        one.zero_grad();
        loss(reference->forward(batch.input), batch).backward();
        one.step();
        many.zero_grad();
        loss(model.forward(own.input), own).backward();
        many.step();
      }
      MUST(distance(net->parameters(), reference->parameters()) < 1e-5);
    }
}

// As a discriminator with real and generated samples: the gradients of a segment come once for each forward
// pass.
RANK_WORKER(ddp_recomputation_twice) {
  auto all = init_distributed();
  for (const auto &again :
       std::vector<std::vector<bool>>{{false, false, true}, {true, false, false}, {true, true, true}})
    for (const int64_t bytes : {300, 100000})
      for (const bool unused : {false, true}) {
        CheckpointedNet reference(std::vector<bool>(3)), net(again);
        DataParallelOptions options;
        options.bucket_bytes = options.first_bucket_bytes = bytes;
        options.find_unused_parameters = unused;
        DistributedDataParallel<CheckpointedNet> model(net, all, options);
        torch::optim::SGD one(reference->parameters(), 0.1), many(net->parameters(), 0.1);
        for (int step = 0; step < 3; ++step) {
          const auto batch = batchOf(step, 8), own = batch.part(all->rank(), all->size());
          const int passes = 1 + (step + 1) % 3; // 2, 3, 1
          torch::Tensor expected = torch::zeros({}), sum = torch::zeros({});
          for (int i = 0; i < passes; ++i) {
            expected = expected + loss(reference->forward(batch.input + i), batch);
            sum = sum + loss(model.forward(own.input + i), own);
          }
          one.zero_grad();
          many.zero_grad();
          expected.backward();
          sum.backward();
          one.step();
          many.step();
        }
        MUST(distance(net->parameters(), reference->parameters()) < 1e-5);
      }
}

// A nested pass waits for the outer one; where that ends without the gradients, or with an exception, it is
// so.
RANK_WORKER(ddp_recomputation_fails) {
  auto all = init_distributed();
  CheckpointedNet net(std::vector<bool>{false, false, true});
  DistributedDataParallel<CheckpointedNet> model(net, all);
  const auto batch = batchOf(0, 8), own = batch.part(all->rank(), all->size());
  const auto cut = [&] { // the outer pass does not come to the first layer
    const auto hidden = torch::tanh(net->layers[1]->forward(torch::ones({4, kWidth})));
    return Recomputed::apply(hidden, &net->layers[2]);
  };
  for (int step = 0; step < 2; ++step) {
    MUST_THROW(cut().sum().backward(), UsageError, "parameters got no gradient");
    auto value = loss(model.forward(own.input), own);
    value.backward();
    net->zero_grad();
  }
  struct CutNetImpl : CheckpointedNetImpl {
    CutNetImpl() : CheckpointedNetImpl({false, false, true}) {}
    torch::Tensor forward(const torch::Tensor &) {
      return Recomputed::apply(Gate::apply(layers[1]->forward(torch::ones({4, kWidth}))), &layers[2]);
    }
  };
  auto partial = std::make_shared<CutNetImpl>();
  DistributedDataParallel<std::shared_ptr<CutNetImpl>> parts(partial, all);
  for (int step = 0; step < 3; ++step) {
    auto value = parts.forward(own.input).sum();
    Gate::closed = step == 1;
    if (Gate::closed)
      MUST_THROW(value.backward(), std::runtime_error, "the gate is closed");
    else
      MUST_THROW(value.backward(), UsageError, "2 parameters got no gradient in this backward pass (a.bias");
    Gate::closed = false;
  }
}

TEST(DataParallelRecomputation, EqualsOneProcess) { ranks::runAll({"ddp_recomputation", 2}); }
TEST(DataParallelRecomputation, EqualsOneProcessOnVirtualGpus) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({"ddp_recomputation", 2, 2});
}
TEST(DataParallelRecomputation, SeveralForwardPasses) { ranks::runAll({"ddp_recomputation_twice", 2}); }
TEST(DataParallelRecomputation, Fails) { ranks::runAll({"ddp_recomputation_fails", 2}); }
