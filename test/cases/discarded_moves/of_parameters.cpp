// Parameters that are "moved" one by one: told of at the move, and only there.
#include "../cases.h"
#include <torch/torch.h>

void one_by_one_bad() {
  torch::nn::Linear model(2, 2);
  for (auto &parameter : model->parameters())
    parameter.to(torch::kCUDA); // [[device-discarded-move]]
  model(torch::ones({1, 2}, torch::kCUDA));
}

void one_by_one_ok() {
  torch::nn::Linear model(2, 2);
  for (auto &parameter : model->parameters())
    parameter.set_data(parameter.data().to(torch::kCUDA));
  model(torch::ones({1, 2}, torch::kCUDA));
}

void by_name_bad() {
  torch::nn::Linear model(2, 2);
  model->to(torch::kCUDA);
  auto parameters = model->named_parameters();
  for (auto &item : parameters)
    item.value().cpu(); // [[device-discarded-move]]
  auto change = parameters["weight"] - torch::ones({2, 2});
}

void by_name_ok() {
  torch::nn::Linear model(2, 2);
  model->to(torch::kCUDA);
  auto parameters = model->named_parameters();
  for (auto &item : parameters)
    item.value() = item.value().cpu();
  auto change = parameters["weight"] - torch::ones({2, 2});
}

DT_MAIN(one_by_one_bad, one_by_one_ok, by_name_bad, by_name_ok)
