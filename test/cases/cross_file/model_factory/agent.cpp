#include "../../cases.h"
#include "factory.h"

void models_from_the_factory_not_moved_bad() {
  const torch::Device device(torch::kCUDA);
  auto models = makeActorCritic(3);
  auto observation = torch::rand({1, 3}, device);
  auto action = models->actor->forward(observation); // [[device-mixed-op]]
  TORCH_CHECK(action.defined());
}

void models_from_the_factory_moved_ok() {
  const torch::Device device(torch::kCUDA);
  auto models = makeActorCriticOn(3, device);
  auto observation = torch::rand({1, 3}, device);
  auto action = models->actor->forward(observation);
  auto value = models->critic->forward(observation);
  TORCH_CHECK(action.defined() && value.defined());
}

void one_model_moved_by_the_caller_bad() {
  const torch::Device device(torch::kCUDA);
  auto models = makeActorCritic(3);
  models->actor->to(device);
  auto observation = torch::rand({1, 3}, device);
  auto action = models->actor->forward(observation);
  auto value = models->critic->forward(observation); // [[device-mixed-op]]
  TORCH_CHECK(action.defined() && value.defined());
}

void both_models_moved_by_the_caller_ok() {
  const torch::Device device(torch::kCUDA);
  auto models = makeActorCritic(3);
  models->actor->to(device);
  models->critic->to(device);
  auto observation = torch::rand({1, 3}, device);
  auto action = models->actor->forward(observation);
  auto value = models->critic->forward(observation);
  TORCH_CHECK(action.defined() && value.defined());
}

DT_MAIN(models_from_the_factory_not_moved_bad, models_from_the_factory_moved_ok,
        one_model_moved_by_the_caller_bad, both_models_moved_by_the_caller_ok)
