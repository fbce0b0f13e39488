// What optimizers keep from step to step is where the parameters were when it was made; Module::to does not move it.
// Neither does it move gradients: before LibTorch 2.0 zero_grad() keeps them, and the next backward() adds to them.
#include "../cases.h"

#include <memory>
#include <torch/torch.h>

namespace {

torch::nn::Sequential regressor() { return torch::nn::Sequential(torch::nn::Linear(4, 3), torch::nn::Linear(3, 1)); }

// As zero_grad(true) does: the next backward() makes gradients where the parameters are then.
void drop_gradients(torch::nn::Sequential &model) {
  for (auto &parameter : model->parameters())
    parameter.mutable_grad().reset();
}

// One step of training on the CPU.
void warm_up(torch::nn::Sequential &model, torch::optim::Optimizer &optimizer) {
  optimizer.zero_grad();
  model->forward(torch::rand({2, 4})).mean().backward();
  optimizer.step();
}

void momentum_bad() {
  auto model = regressor();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  warm_up(model, optimizer);
  model->to(torch::kCUDA);
  drop_gradients(model);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step(); // [[device-mixed-op]]
}
// Without momentum SGD keeps nothing.
void plain_sgd_ok() {
  auto model = regressor();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.0));
  warm_up(model, optimizer);
  model->to(torch::kCUDA);
  drop_gradients(model);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step();
}

// Moments made on the CPU meet the gradients of later epochs.
void adam_bad() {
  auto model = regressor();
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  torch::Device device(torch::kCPU);
  for (int epoch = 0; epoch < 4; ++epoch) {
    drop_gradients(model);
    model->forward(torch::rand({2, 4}, device)).mean().backward();
    optimizer.step(); // [[device-mixed-op]]
    if (epoch == 1) {
      device = torch::Device(torch::kCUDA);
      model->to(device);
    }
  }
}
// A new optimizer has kept nothing yet.
void adam_made_anew_ok() {
  auto model = regressor();
  auto optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(1e-2));
  torch::Device device(torch::kCPU);
  for (int epoch = 0; epoch < 4; ++epoch) {
    drop_gradients(model);
    model->forward(torch::rand({2, 4}, device)).mean().backward();
    optimizer->step();
    if (epoch == 1) {
      device = torch::Device(torch::kCUDA);
      model->to(device);
      optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(1e-2));
    }
  }
}

// Adagrad makes its sums when it is constructed.
void adagrad_before_the_move_bad() {
  auto model = regressor();
  torch::optim::Adagrad optimizer(model->parameters(), torch::optim::AdagradOptions(0.1));
  model->to(torch::kCUDA);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step(); // [[device-mixed-op]]
}
// The others make theirs on the first step.
void rmsprop_before_the_move_ok() {
  auto model = regressor();
  torch::optim::RMSprop optimizer(model->parameters(), torch::optim::RMSpropOptions(0.1));
  model->to(torch::kCUDA);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step();
}

// zero_grad() fills the gradients with zeros where they are; since LibTorch 2.0 it drops them.
void kept_gradients_bad() {
  auto model = regressor();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  warm_up(model, optimizer);
  model->to(torch::kCUDA);
  optimizer.zero_grad();
  auto loss = model->forward(torch::rand({2, 4}, torch::kCUDA)).mean();
  loss.backward(); // [[device-mixed-op if torch<2]]
  optimizer.step();
}
// The model that is moved has no gradients yet.
void another_model_ok() {
  auto critic = regressor(), actor = regressor();
  torch::optim::SGD criticOptimizer(critic->parameters(), torch::optim::SGDOptions(0.1));
  torch::optim::SGD actorOptimizer(actor->parameters(), torch::optim::SGDOptions(0.1));
  warm_up(critic, criticOptimizer);
  critic->to(torch::kCUDA);
  actor->to(torch::kCUDA);
  actor->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  actorOptimizer.step();
}
// Away for an evaluation and back.
void evaluated_elsewhere_ok() {
  auto model = regressor();
  model->to(torch::kCUDA);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  for (int epoch = 0; epoch < 3; ++epoch) {
    optimizer.zero_grad();
    model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
    optimizer.step();
    model->to(torch::kCPU);
    {
      torch::NoGradGuard guard;
      model->forward(torch::rand({2, 4}));
    }
    model->to(torch::kCUDA);
  }
}

// The state is moved by hand.
void state_moved_ok() {
  auto model = regressor();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  warm_up(model, optimizer);
  model->to(torch::kCUDA);
  for (auto &entry : optimizer.state()) {
    auto &kept = static_cast<torch::optim::SGDParamState &>(*entry.second);
    kept.momentum_buffer(kept.momentum_buffer().to(torch::kCUDA));
  }
  drop_gradients(model);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step();
}

} // namespace

DT_MAIN(momentum_bad, plain_sgd_ok, adam_bad, adam_made_anew_ok, adagrad_before_the_move_bad,
        rmsprop_before_the_move_ok, kept_gradients_bad, another_model_ok, evaluated_elsewhere_ok, state_moved_ok)
