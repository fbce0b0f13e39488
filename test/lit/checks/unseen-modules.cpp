// REQUIRES: torch
// RUN: not %device-tidy --level=latent %s %torch | FileCheck %s --check-prefixes=CHECK,LATENT --implicit-check-not=warning:
// RUN: not %device-tidy %s %torch | FileCheck %s --implicit-check-not=warning:
//
// Modules that something unknown makes: where they are is not known until they are moved.
#include <torch/script.h>
#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  torch::nn::Linear layer{nullptr};
  NetImpl() { layer = register_module("layer", torch::nn::Linear(4, 2)); }
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'Linear::forward' can get the parameters of 'layer' on 'device' and 'x' on cpu [device-mixed-op]
  torch::Tensor forward(torch::Tensor x) { return layer->forward(x); }
};
TORCH_MODULE(Net);

torch::nn::Sequential makeSequential(const char *name);
std::shared_ptr<NetImpl> makeNet();
torch::jit::Module makeScript();
std::shared_ptr<torch::jit::Module> findScript();

void moved(torch::Device device) {
  auto net = makeNet();
  net->to(device);
  net->forward(torch::rand({1, 4}));
}

void notMoved() {
  makeNet()->forward(torch::rand({1, 4}));
  makeSequential("d")->forward(torch::rand({1, 4}));
  makeScript().forward({torch::rand({1, 4})});
}

// One of two is moved, and each iteration makes another.
void oneMoved(torch::Device device) {
  auto generator = makeSequential("g"), discriminator = makeSequential("d");
  discriminator->to(device);
  generator->forward(torch::rand({1, 4}));
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'Sequential::forward' can get the parameters of 'discriminator' on 'device' and 'torch::rand({1, 4})' on cpu [device-mixed-op]
  discriminator->forward(torch::rand({1, 4}));
}

void eachIteration(torch::Device device, int count) {
  for (int i = 0; i < count; ++i) {
    auto net = makeSequential("n");
    net->forward(torch::rand({1, 4}));
    net->to(device);
  }
}

void script(torch::Device device) {
  auto loaded = makeScript();
  loaded.to(device);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'forward of a scripted module' can get the parameters of 'loaded' on 'device' and 'torch::rand({1, 4})' on cpu [device-mixed-op]
  loaded.forward({torch::rand({1, 4})});
  const std::shared_ptr<torch::jit::Module> shared = findScript();
  shared->to(device);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'forward of a scripted module' can get the parameters of 'shared' on 'device' and 'torch::rand({1, 4})' on cpu [device-mixed-op]
  shared->forward({torch::rand({1, 4})});
}

// Where the script is nobody knows, but one of what it gets is moved and the other one is not.
void oneArgument(torch::Tensor x, torch::Tensor y, torch::Device device) {
  auto loaded = makeScript();
  x = x.to(device);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'forward of a scripted module' can get 'x' on 'device' and 'y' on 'y.device()' [device-mixed-op]
  loaded.forward({x, y});
  loaded.forward({x, y.to(device)});
}

void argumentLists(std::vector<torch::Tensor> inputs, std::vector<torch::Tensor> others, torch::Device device) {
  auto loaded = makeScript();
  for (auto &each : inputs)
    each = each.to(device);
  std::vector<torch::jit::IValue> all;
  all.insert(all.end(), inputs.begin(), inputs.end());
  all.insert(all.end(), others.begin(), others.end());
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'forward of a scripted module' can get 'all' on 'device' and 'all' on 'others[i].device()' [device-mixed-op]
  loaded.forward(all);
}

// LATENT: [[@LINE+2]]:{{[0-9]+}}: warning: 'forward of a scripted module' can get the parameters of 'given' on 'given.device()' and 'torch::rand({1, 4})' on cpu [device-mixed-op]
at::Tensor givenScript(torch::jit::Module &given) {
  return given.forward({torch::rand({1, 4})}).toTensor();
}

// A scripted module that a caller passes, kept in a member, which shares its parameters.
class Kernel {
  torch::jit::Module module;
  torch::Tensor positions;

public:
  void initialize(torch::jit::Module &given, int index) {
    module = given;
    given.to(torch::kCUDA);
    positions = torch::empty({4, 3}, torch::Device(torch::kCUDA, index));
  }
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'forward of a scripted module' can get the parameters of 'module' on cuda (the current device) and 'positions' on 'cuda:index' [device-mixed-op]
  torch::Tensor execute() { return module.forward({positions}).toTensor(); }
};
