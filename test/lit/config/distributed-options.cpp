// REQUIRES: torch
// Functions that only the user knows: what they do is said in CheckOptions.
//
// RUN: %device-tidy %s %torch 2>&1 | FileCheck %s --check-prefix=SILENT
// RUN: %device-tidy --config="CheckOptions: {device-map-distributed.LoaderFunctions: hub::fetch}" %s %torch 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SILENT
// RUN: not %device-tidy --config="CheckOptions: {device-map-distributed.LoaderFunctions: 'other;hub::fetch', \
// RUN:   device-map-distributed.InitFunctions: start}" %s %torch | FileCheck %s --implicit-check-not=warning:
// RUN: not %device-tidy -config "CheckOptions: {device-map-distributed.LoaderFunctions: fetch, \
// RUN:   device-map-distributed.LaunchFunctions: hub::shell}" %s %torch | FileCheck %s --check-prefix=LAUNCH
//
// Members that may stay behind.
// RUN: not %device-tidy %s %torch -DMEMBER | FileCheck %s --check-prefix=MEMBER
// RUN: %device-tidy --config="CheckOptions: {device-unregistered-tensor.IgnoredMembers: 'x;NetImpl::host*'}" %s \
// RUN:   %torch -DMEMBER 2>&1 | FileCheck %s --check-prefix=SILENT
// SILENT: no findings
#include <torch/torch.h>

#include <map>
#include <string>

namespace hub {
torch::nn::Linear fetch(const std::string &name, const std::map<std::string, std::string> &options);
void shell(const std::string &command);
} // namespace hub
namespace comm {
void start(int rank);
}

#ifndef MEMBER
int main(int argc, char **argv) {
  // CHECK: warning: placement map auto reaches 'hub::fetch' in a program {{.*}} with 'comm::start'
  // CHECK: :[[@LINE+1]]:{{.*}} note: distributed training is initialised here
  comm::start(argc);
  // LAUNCH: :[[@LINE+1]]:{{.*}} note: distributed training is initialised here
  hub::shell("torchrun --nproc-per-node 2 train");
  hub::fetch("model", {{"device_map", "auto"}});
}
#else
struct NetImpl : torch::nn::Module {
  NetImpl() : layer(register_module("layer", torch::nn::Linear(4, 4))) { hostMask = torch::ones({4}); }
  // MEMBER: :[[@LINE+1]]:{{.*}} warning: {{.*}}[device-unregistered-tensor]
  torch::Tensor forward(torch::Tensor x) { return layer->forward(x) * hostMask; }
  torch::nn::Linear layer;
  torch::Tensor hostMask;
};
TORCH_MODULE(Net);
int main() {
  Net net;
  net->to(torch::kCUDA);
  net->forward(torch::ones({2, 4}, torch::kCUDA));
}
#endif
