#include "factory.h"

std::shared_ptr<ActorCritic> makeActorCritic(int64_t inputs) {
  auto models = std::make_shared<ActorCritic>();
  models->actor = torch::nn::Linear(inputs, 2);
  models->critic = torch::nn::Linear(inputs, 1);
  return models;
}

std::shared_ptr<ActorCritic> makeActorCriticOn(int64_t inputs, torch::Device device) {
  auto models = makeActorCritic(inputs);
  models->actor->to(device);
  models->critic->to(device);
  return models;
}
