// Devices in globals: constants that modules are moved to, and one that a scope changes and changes back.
#include "../cases.h"

#include <torch/torch.h>
#include <tuple>

namespace {

const torch::Device kGpu(torch::kCUDA, 0);
torch::Device placement = torch::kCPU;

struct LooseImpl : torch::nn::Module {
  LooseImpl() : codes(torch::rand({4, 3})) { project = register_module("project", torch::nn::Linear(3, 3)); }
  torch::Tensor forward(const torch::Tensor &x) {
    auto z = project(x);
    auto nearest = torch::cdist(z, codes).argmin(1); // [[device-unregistered-tensor]]
    auto q = codes.index_select(0, nearest);
    return z + (q - z).detach();
  }
  torch::nn::Linear project{nullptr};
  torch::Tensor codes;
};
TORCH_MODULE(Loose);
void one_cause_bad() {
  Loose net;
  net->to(kGpu);
  net->forward(torch::rand({2, 3}, kGpu));
}

void constant_ok() {
  torch::nn::Linear net(3, 3);
  net->to(kGpu);
  net(torch::rand({2, 3}, torch::Device("cuda:0")));
}

class Placed {
public:
  explicit Placed(torch::Device device) : before(placement) { placement = device; }
  ~Placed() { placement = before; }
  Placed(const Placed &) = delete;
  Placed &operator=(const Placed &) = delete;

private:
  torch::Device before;
};
torch::Tensor made() { return torch::rand(3, placement); }

void scope_ok() {
  torch::Tensor a, b;
  {
    Placed scope(torch::kCUDA);
    a = made();
    b = made();
  }
  auto sum = a + b;
  auto host = made() + torch::rand(3);
}
void scope_bad() {
  torch::Tensor a;
  {
    Placed scope(torch::kCUDA);
    a = made();
  }
  auto sum = a + made(); // [[device-mixed-op]]
}

// No scope: what the destructor leaves is a device of its own choice, and the pointer is gone.
torch::Device current = torch::kCPU;
struct Session {
  explicit Session(torch::Device device) { current = device; }
  ~Session() { current = torch::kCPU; }
};
struct Engine {
  Engine();
  ~Engine();
};
Engine *engine = nullptr;
Engine::Engine() { engine = this; }
Engine::~Engine() { engine = nullptr; }
torch::Tensor run_in_engine(const torch::Tensor &x) {
  if (!engine)
    return x;
  return torch::rand(3, torch::kCUDA) + torch::rand(3); // [[device-mixed-op]]
}
void engine_bad() {
  Engine made;
  run_in_engine(torch::rand(3));
}

// Globals that are moved by way of a conditional, a tuple and a cast.
torch::nn::Linear left(3, 3), right(3, 3);
std::tuple<torch::nn::Linear, torch::nn::Linear> both{torch::nn::Linear(3, 3), torch::nn::Linear(3, 3)};
void place(bool first, torch::Device device) { (first ? left : right)->to(device); }
void placeBoth(torch::Device device) {
  std::get<0>(both)->to(device);
  std::get<1>(both)->to(device);
}
torch::Tensor with_left(const torch::Tensor &) { return torch::mm(left->weight, torch::rand({3, 3}, kGpu)); }
torch::Tensor with_first(const torch::Tensor &) {
  return torch::mm(std::get<0>(both)->weight, torch::rand({3, 3}, kGpu));
}
void placed_ok() {
  Session session(kGpu);
  place(true, current);
  placeBoth(current);
  with_left({});
  with_first({});
}

} // namespace

DT_MAIN(one_cause_bad, constant_ok, scope_ok, scope_bad, engine_bad, placed_ok)
