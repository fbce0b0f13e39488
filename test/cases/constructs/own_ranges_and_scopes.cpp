// Range-for over a class of the program, destructors that move a model back, recursion with a known depth.
#include "../cases.h"

#include <torch/torch.h>

namespace {

struct MiniBatch {
  torch::Tensor x, y;
};

template <bool labelsStay> struct Loader {
  struct Iterator {
    int i;
    MiniBatch operator*() const {
      auto labels = torch::zeros({2, 3});
      return {torch::ones({2, 3}, torch::kCUDA), labelsStay ? labels : labels.to(torch::kCUDA)};
    }
    Iterator &operator++() {
      ++i;
      return *this;
    }
    bool operator!=(const Iterator &other) const { return i != other.i; }
  };
  Iterator begin() const { return {0}; }
  Iterator end() const { return {2}; }
};

void own_range_bad() {
  Loader<true> loader;
  for (const auto &batch : loader)
    auto loss = torch::mse_loss(batch.x, batch.y); // [[device-loss-input]]
}

void own_range_ok() {
  Loader<false> loader;
  for (const auto &batch : loader)
    auto loss = torch::mse_loss(batch.x, batch.y);
}

class ScopedDevice {
public:
  ScopedDevice(torch::nn::Module &module, torch::Device device) : module(module) { module.to(device); }
  ~ScopedDevice() { module.to(torch::kCPU); }

private:
  torch::nn::Module &module;
};

void scoped_device_bad() {
  torch::nn::Linear net(3, 3);
  auto x = torch::ones({1, 3}, torch::kCUDA);
  {
    ScopedDevice scope(*net, torch::kCUDA);
    auto inside = net(x);
  }
  auto outside = net(x); // [[device-mixed-op]]
}

void scoped_device_ok() {
  torch::nn::Linear net(3, 3);
  auto x = torch::ones({1, 3}, torch::kCUDA);
  {
    ScopedDevice scope(*net, torch::kCUDA);
    auto inside = net(x);
  }
  auto outside = net(x.cpu());
}

torch::Tensor powerOf(const torch::Tensor &a, int k) {
  if (k == 0)
    return torch::ones({3});
  return a.mv(powerOf(a, k - 1)); // [[device-mixed-op]]
}

torch::Tensor powerBeside(const torch::Tensor &a, int k) {
  if (k == 0)
    return torch::ones({3}, a.options());
  return a.mv(powerBeside(a, k - 1));
}

void recursion_bad() { auto y = powerOf(torch::eye(3, torch::kCUDA), 4); }
void recursion_ok() { auto y = powerBeside(torch::eye(3, torch::kCUDA), 4); }

} // namespace

DT_MAIN(own_range_bad, own_range_ok, scoped_device_bad, scoped_device_ok, recursion_bad, recursion_ok)
