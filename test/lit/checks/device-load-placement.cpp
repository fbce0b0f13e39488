// REQUIRES: torch
// RUN: not %device-tidy --checks=device-load-placement %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/script.h>
#include <torch/torch.h>

torch::Tensor script(const std::string &file, torch::Tensor x, torch::Device device) {
  // CHECK: :[[@LINE+4]]:{{.*}} warning: {{.*}} 'x.to(device)' on 'device' and the parameters of 'model' on the device of the saved file: the load names no device [device-load-placement]
  // CHECK: note: 'the script' is loaded here
  // CHECK: note: pass the device to the load, or move what was loaded
  auto model = torch::jit::load(file);
  return model.forward({x.to(device)}).toTensor();
}
torch::Tensor scriptOntoDevice(const std::string &file, torch::Tensor x, torch::Device device) {
  auto model = torch::jit::load(file, device);
  return model.forward({x.to(device)}).toTensor();
}
// Another load of a module is given a device.
void given(const std::string &file, torch::nn::Linear net, torch::Device device) { torch::load(net, file, device); }
torch::Tensor scriptMoved(const std::string &file, torch::Tensor x, torch::Device device) {
  auto model = torch::jit::load(file);
  model.to(device);
  return model.forward({x.to(device)}).toTensor();
}
torch::Tensor scriptOnCpu(const std::string &file) {
  auto model = torch::jit::load(file);
  return model.forward({torch::rand({3, 3})}).toTensor();
}
torch::Tensor scriptWhereTheCallerIs(const std::string &file, torch::Tensor x) {
  auto model = torch::jit::load(file);
  return model.forward({x}).toTensor();
}
torch::Tensor scriptPerhapsOntoDevice(const std::string &file, torch::Tensor x, c10::optional<torch::Device> where) {
  auto model = torch::jit::load(file, where);
  return model.forward({x.cuda()}).toTensor();
}

torch::Tensor tensor(const std::string &file) {
  torch::Tensor mean;
  torch::load(mean, file);
  // CHECK: :[[@LINE+1]]:{{.*}} [device-load-placement]
  return torch::rand({3}, torch::kCUDA) - mean;
}

void module(const std::string &file, torch::Device device) {
  torch::nn::Linear net(3, 3);
  torch::load(net, file);
  // CHECK: :[[@LINE+1]]:{{.*}} [device-load-placement]
  net->forward(torch::rand({3, 3}, device));
}

// It lands where it was saved, whatever it replaces.
void resumed(const std::string &file, torch::Device device) {
  torch::nn::Linear net(3, 3);
  net->to(device);
  torch::load(net, file);
  // CHECK: :[[@LINE+1]]:{{.*}} [device-load-placement]
  net->forward(torch::rand({3, 3}, device));
}
