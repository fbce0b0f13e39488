// Tensor::to returns a new tensor; Module::to works in place. Same spelling, one of them a no-op.
#include <torch/torch.h>

#include <tuple>
#include <vector>

#include "../cases.h"

using torch::Tensor;

void state_beside_the_model_bad() {
  auto device = torch::Device(torch::kCUDA);
  torch::nn::Linear model(4, 2);
  Tensor state = torch::rand({1, 4});
  model->to(device);
  state.to(device); // [[device-discarded-move]]
  auto action = model->forward(state);
  TORCH_CHECK(action.defined());
}

void state_beside_the_model_ok() {
  auto device = torch::Device(torch::kCUDA);
  torch::nn::Linear model(4, 2);
  Tensor state = torch::rand({1, 4});
  model->to(device);
  state = state.to(device);
  auto action = model->forward(state);
  TORCH_CHECK(action.defined());
}

std::tuple<Tensor, Tensor, Tensor> sampleBuffer() {
  return {torch::rand({8, 4}), torch::randint(2, {8, 1}, torch::kLong), torch::rand({8, 1})};
}

void after_std_tie_bad() {
  torch::Device device(torch::kCUDA);
  Tensor states, actions, rewards;
  std::tie(states, actions, rewards) = sampleBuffer();
  states.to(device);  // [[device-discarded-move]]
  actions.to(device); // [[device-discarded-move]]
  rewards.to(device); // [[device-discarded-move]]
}

void after_std_tie_ok() {
  torch::Device device(torch::kCUDA);
  Tensor states, actions, rewards;
  std::tie(states, actions, rewards) = sampleBuffer();
  states = states.to(device);
  actions = actions.to(device);
  rewards = rewards.to(device);
  TORCH_CHECK((rewards.sum() + states.sum()).defined() && actions.is_cuda());
}

void cuda_and_cpu_calls_bad() {
  Tensor frames = torch::rand({2, 3});
  frames.cuda(); // [[device-discarded-move]]
  Tensor logits = torch::rand({2, 3}, torch::kCUDA);
  logits.detach().cpu(); // [[device-discarded-move]]
}

void cuda_and_cpu_calls_ok() {
  Tensor frames = torch::rand({2, 3});
  frames = frames.cuda();
  Tensor logits = torch::rand({2, 3}, torch::kCUDA);
  const float first = logits.detach().cpu()[0][0].item<float>();
  TORCH_CHECK(first >= 0 && frames.is_cuda());
}

Tensor flag_guarded_move_bad(bool use_cuda) {
  Tensor t = torch::zeros({3});
  if (use_cuda)
    t.to(torch::kCUDA); // [[device-discarded-move]]
  return t;
}
void call_flag_guarded_move_bad() { flag_guarded_move_bad(true); }

Tensor flag_guarded_move_ok(bool use_cuda) {
  Tensor t = torch::zeros({3});
  if (use_cuda)
    t = t.to(torch::kCUDA);
  return t;
}
void call_flag_guarded_move_ok() { flag_guarded_move_ok(true); }

void every_element_of_a_vector_bad() {
  std::vector<Tensor> inputs{torch::rand({2}), torch::rand({3})};
  for (auto &t : inputs)
    t.to(torch::kCUDA); // [[device-discarded-move]]
}

void every_element_of_a_vector_ok() {
  std::vector<Tensor> inputs{torch::rand({2}), torch::rand({3})};
  for (auto &t : inputs)
    t = t.to(torch::kCUDA);
}

void in_lambda_body_bad() {
  auto move = [](Tensor &t) { t.to(torch::kCUDA); }; // [[device-discarded-move]]
  Tensor x = torch::rand({2});
  move(x);
}

void in_lambda_body_ok() {
  auto move = [](const Tensor &t) { return t.to(torch::kCUDA); };
  Tensor x = torch::rand({2});
  x = move(x);
}

DT_MAIN(state_beside_the_model_bad, state_beside_the_model_ok, after_std_tie_bad, after_std_tie_ok,
        cuda_and_cpu_calls_bad, cuda_and_cpu_calls_ok, call_flag_guarded_move_bad,
        call_flag_guarded_move_ok, every_element_of_a_vector_bad, every_element_of_a_vector_ok,
        in_lambda_body_bad, in_lambda_body_ok)
