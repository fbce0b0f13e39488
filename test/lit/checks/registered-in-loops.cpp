// REQUIRES: torch
// RUN: not %device-tidy %s %torch | FileCheck %s --implicit-check-not=warning:
//
// Layers that a loop registers under names that it makes, on ways that differ: moved with their module, and left
// where they are made with a module that nobody moves.
#include <torch/torch.h>
#include <string>
#include <vector>
struct Settings {
  std::vector<int> sizes() const;
  bool flag(const std::string &name) const;
};
struct Encoder : torch::nn::Module {
  void setup(const Settings &settings) {
    sizes = settings.sizes();
    isWide = settings.flag("wide");
    for (int i = 0; i < sizes.size() - 1; ++i) {
      if (i < sizes.size() - 2) {
        layers.push_back(register_module("layer_" + std::to_string(i), torch::nn::Linear(sizes[i], sizes[i + 1])));
        biases.push_back(register_parameter("bias_" + std::to_string(i), torch::zeros(sizes[i + 1])));
      } else {
        heads.push_back(register_module("head_" + std::to_string(i), torch::nn::Linear(sizes[i], sizes[i + 1])));
        outBiases.push_back(register_parameter("out_" + std::to_string(i), torch::zeros(sizes[i + 1])));
        if (isWide) {
          heads.push_back(register_module("second_" + std::to_string(i), torch::nn::Linear(sizes[i], sizes[i + 1])));
          outBiases.push_back(register_parameter("more_" + std::to_string(i), torch::zeros(sizes[i + 1])));
        } else {
          outBiases.push_back(register_parameter("more_" + std::to_string(i), torch::ones(sizes[i + 1])));
        }
      }
    }
  }
  std::vector<torch::Tensor> forward(const std::vector<torch::Tensor> &inputs) {
    auto x = inputs[0];
    torch::Tensor y, z;
    for (int i = 0; i < sizes.size() - 1; ++i) {
      if (i < sizes.size() - 2) {
        // CHECK: [[@LINE+1]]:36: warning: 'Linear::forward' can get 'x' on 'device' and the parameters of 'layers[i]' on cpu [device-mixed-op]
        x = torch::relu(layers[i]->forward(x) + biases[i]);
      } else {
        // CHECK: [[@LINE+1]]:23: warning: 'Linear::forward' can get 'x' on 'device' and the parameters of 'heads[0]' on cpu [device-mixed-op]
        y = heads[0]->forward(x) + outBiases[0];
        z = isWide ? heads[1]->forward(x) + outBiases[1] : outBiases[1];
      }
    }
    return {y, z};
  }
  std::vector<int> sizes;
  bool isWide;
  std::vector<torch::nn::Linear> layers, heads;
  std::vector<torch::Tensor> biases, outBiases;
};
struct Moved {
  Moved(const Settings &s, torch::Device device) : device(device) { encoder = std::make_shared<Encoder>(); encoder->setup(s); encoder->to(device); }
  std::vector<torch::Tensor> run(torch::Tensor x) { return encoder->forward({x.to(device)}); }
  torch::Device device;
  std::shared_ptr<Encoder> encoder;
};
struct Unmoved {
  Unmoved(const Settings &s, torch::Device device) : device(device) { encoder = std::make_shared<Encoder>(); encoder->setup(s); }
  std::vector<torch::Tensor> run(torch::Tensor x) { return encoder->forward({x.to(device)}); }
  torch::Device device;
  std::shared_ptr<Encoder> encoder;
};
