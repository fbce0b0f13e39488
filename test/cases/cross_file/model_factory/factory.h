#pragma once
#include <torch/torch.h>

#include <memory>

struct ActorCritic {
  torch::nn::Linear actor{nullptr};
  torch::nn::Linear critic{nullptr};
};

std::shared_ptr<ActorCritic> makeActorCritic(int64_t inputs);
std::shared_ptr<ActorCritic> makeActorCriticOn(int64_t inputs, torch::Device device);
