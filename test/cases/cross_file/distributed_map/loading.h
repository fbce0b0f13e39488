#pragma once
#include <torch/torch.h>

#include <string>
#include <vector>

struct ModelArguments {
  std::string name;
  std::string device_map;
};

std::vector<torch::nn::Linear> load_pretrained(const ModelArguments &arguments);
std::vector<torch::nn::Linear> loadForFinetuning(const std::string &name);
std::vector<torch::nn::Linear> loadWhole(const std::string &name, torch::Device device);
