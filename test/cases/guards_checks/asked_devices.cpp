// Branches that ask for devices: where two are equal nothing is mixed, and where a tensor from outside is on the
// CPU the program runs without GPUs.
#include "../cases.h"

#include <sstream>
#include <torch/script.h>
#include <torch/torch.h>

namespace {

// A table that is made again for another device.
class Rotary {
public:
  torch::Tensor apply(const torch::Tensor &x) {
    if (!table.defined() || table.device() != x.device())
      table = torch::ones(4).to(x.device());
    return x * table;
  }

private:
  torch::Tensor table;
};
void table_for_each_device_ok() {
  Rotary rotary;
  rotary.apply(torch::rand({2, 4}));
  rotary.apply(torch::rand({2, 4}, torch::kCUDA));
  rotary.apply(torch::rand({2, 4}, torch::Device(torch::kCUDA, 1)));
}
void asked_for_equality_ok() {
  auto x = torch::rand(3, torch::Device(torch::kCUDA, 1)), y = torch::rand(3, torch::kCUDA);
  auto sum = x.device() == y.device() ? x + y : x + y.to(x.device());
}

struct Config {
  int gpus = 0;
};
torch::Tensor overlaps(const torch::Tensor &boxes) {
  auto result = torch::zeros({4});
  if (boxes.is_cuda())
    result = result.cuda();
  return result;
}
#ifndef DT_RUN
// Whether there are GPUs is asked in two ways that go together.
torch::Tensor sample(const torch::Tensor &boxes, const Config &config) {
  auto order = torch::randperm(4, torch::kLong);
  if (config.gpus > 0)
    order = order.cuda();
  return overlaps(boxes).take(order);
}
#endif
void asked_twice_ok() { overlaps(torch::rand({4, 4}, torch::kCUDA)).take(torch::zeros({2}, torch::kLong).cuda()); }

void legacy_backend_bad() {
  auto anchors = torch::rand({4, 2}).toBackend(torch::Backend::CUDA);
  auto shifted = anchors + torch::rand({4, 2}); // [[device-mixed-op]]
}
void legacy_backend_ok() {
  auto anchors = torch::rand({4, 2}).toBackend(torch::Backend::CUDA);
  auto shifted = anchors + torch::rand({4, 2}, torch::kCUDA);
}

// Without a GPU the script is not loaded at all, and the device stays the CPU.
#ifndef DT_RUN
class Scorer {
public:
  Scorer() {
    if (torch::cuda::is_available())
      device = torch::kCUDA;
    try {
      script = torch::jit::load("scorer.pt", torch::kCUDA);
    } catch (const c10::Error &) {
      return;
    }
  }
  torch::Tensor operator()(const torch::Tensor &x) { return script.forward({x.to(device)}).toTensor(); }

private:
  torch::Device device = torch::kCPU;
  torch::jit::Module script;
};
torch::Tensor score() { return Scorer()(torch::rand({2, 3})); }
#endif

std::string saved() {
  torch::serialize::OutputArchive archive;
  archive.write("velocity", torch::zeros({3}));
  std::ostringstream out;
  archive.save_to(out);
  return out.str();
}
torch::Tensor restored(torch::Device device) {
  std::istringstream in(saved());
  torch::serialize::InputArchive archive;
  archive.load_from(in, device);
  torch::Tensor velocity;
  archive.read("velocity", velocity);
  return velocity;
}
void archive_bad() {
  auto velocity = restored(torch::kCPU);
  velocity.add_(torch::rand({3}, torch::kCUDA)); // [[device-mixed-op]]
}
void archive_ok() {
  auto velocity = restored(torch::kCUDA);
  velocity.add_(torch::rand({3}, torch::kCUDA));
}

} // namespace

DT_MAIN(table_for_each_device_ok, asked_for_equality_ok, asked_twice_ok, legacy_backend_bad, legacy_backend_ok,
        archive_bad, archive_ok)
