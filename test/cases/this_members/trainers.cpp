// Trainer and agent classes: tensors and the device are data members, methods meet each other's tensors.
#include <torch/torch.h>

#include <memory>
#include <utility>

#include "../cases.h"

struct PolicyNetImpl : torch::nn::Module {
  explicit PolicyNetImpl(int64_t n) : body(register_module("body", torch::nn::Linear(n, 16))),
                                      head(register_module("head", torch::nn::Linear(16, 2))) {}
  torch::Tensor forward(torch::Tensor x) { return head(torch::relu(body(x))); }
  torch::nn::Linear body, head;
};
TORCH_MODULE(PolicyNet);

class Trainer {
public:
  explicit Trainer(torch::Device device) : device_(device), net_(4) { net_->to(device_); }

  torch::Tensor evaluate(const torch::Tensor &observation) { return net_->forward(observation.to(device_)); }

  void addBaseline() {
    baseline_ = torch::zeros({1, 2});
  }

  torch::Tensor advantage(const torch::Tensor &observation) {
    return evaluate(observation) - baseline_; // [[device-mixed-op]]
  }

private:
  torch::Device device_;
  PolicyNet net_;
  torch::Tensor baseline_;
};

class FixedTrainer {
public:
  explicit FixedTrainer(torch::Device device) : device_(device), net_(4) { net_->to(device_); }

  torch::Tensor evaluate(const torch::Tensor &observation) { return net_->forward(observation.to(device_)); }

  void addBaseline() {
    baseline_ = torch::zeros({1, 2}, torch::TensorOptions().device(device_));
  }

  torch::Tensor advantage(const torch::Tensor &observation) {
    return evaluate(observation) - baseline_;
  }

private:
  torch::Device device_;
  PolicyNet net_;
  torch::Tensor baseline_;
};

void trainer_baseline_on_host_bad() {
  Trainer trainer(torch::kCUDA);
  trainer.addBaseline();
  auto a = trainer.advantage(torch::rand({1, 4}));
  TORCH_CHECK(a.numel() == 2);
}

void trainer_baseline_on_device_ok() {
  FixedTrainer trainer(torch::kCUDA);
  trainer.addBaseline();
  auto a = trainer.advantage(torch::rand({1, 4}));
  TORCH_CHECK(a.numel() == 2);
}

// The model is moved by an init method on one construction path only.
class Agent {
public:
  Agent() : net(4) {}
  explicit Agent(torch::Device d) : device(d), net(4) {}

  void setup() { optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), 0.1); }

  int64_t act(const torch::Tensor &obs) {
    torch::NoGradGuard guard;
    auto logits = net->forward(obs.to(device)); // the operation that fails is inside PolicyNet::forward
    return logits.argmax(1).item<int64_t>();
  }

  torch::Device device{torch::kCPU};
  PolicyNet net;
  std::unique_ptr<torch::optim::SGD> optimizer;
};

void agent_on_cpu_throughout_ok() {
  Agent agent;
  agent.setup();
  TORCH_CHECK(agent.act(torch::rand({1, 4})) < 2);
}

// A running mean kept between calls: fed by host tensors first, by device tensors later.
class RunningMean {
public:
  void update(const torch::Tensor &v) {
    if (!mean_.defined())
      mean_ = torch::zeros_like(v);
    mean_ = mean_ * 0.9 + v * 0.1;
  }
  torch::Tensor get() const { return mean_; }

private:
  torch::Tensor mean_;
};

void running_mean_follows_its_input_ok() {
  RunningMean m;
  auto batch = torch::rand({3, 4}, torch::kCUDA);
  m.update(batch.mean(0));
  auto centred = batch - m.get();
  TORCH_CHECK(centred.size(0) == 3);
}

class HostRunningMean {
public:
  explicit HostRunningMean(int64_t n) : mean_(torch::zeros({n})) {}
  void update(const torch::Tensor &v) {
    mean_ = mean_ * 0.9 + v.mean(0) * 0.1; // [[device-mixed-op]]
  }

private:
  torch::Tensor mean_;
};

void running_mean_fixed_on_host_bad() {
  HostRunningMean m(4);
  m.update(torch::rand({3, 4}, torch::kCUDA));
}

class HostRunningMeanFedFromHost {
public:
  explicit HostRunningMeanFedFromHost(int64_t n) : mean_(torch::zeros({n})) {}
  void update(const torch::Tensor &v) {
    mean_ = mean_ * 0.9 + v.mean(0) * 0.1;
  }

private:
  torch::Tensor mean_;
};

void running_mean_fed_from_host_ok() {
  HostRunningMeanFedFromHost m(4);
  auto batch = torch::rand({3, 4}, torch::kCUDA);
  m.update(batch.cpu());
}

DT_MAIN(trainer_baseline_on_host_bad, trainer_baseline_on_device_ok, agent_on_cpu_throughout_ok,
        running_mean_follows_its_input_ok, running_mean_fixed_on_host_bad, running_mean_fed_from_host_ok)
