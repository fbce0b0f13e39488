#include "loading.h"

std::vector<torch::nn::Linear> load_pretrained(const ModelArguments &arguments) {
  std::vector<torch::nn::Linear> layers;
  for (int i = 0; i < 4; ++i)
    layers.emplace_back(4, 4);
  if (!arguments.device_map.empty())
    layers[3]->to(torch::Device(torch::kCUDA, 1));
  return layers;
}

std::vector<torch::nn::Linear> loadForFinetuning(const std::string &name) {
  ModelArguments arguments;
  arguments.name = name;
  arguments.device_map = "auto";
  return load_pretrained(arguments); // [[device-map-distributed]]
}

std::vector<torch::nn::Linear> loadWhole(const std::string &name, torch::Device device) {
  auto layers = load_pretrained({name, ""});
  for (auto &layer : layers)
    layer->to(device);
  return layers;
}
