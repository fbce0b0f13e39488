// Closures that capture a pack: each element is a capture of its own.
#include "../cases.h"
#include <torch/torch.h>

#include <functional>
#include <utility>

namespace {

using Transform = std::function<torch::Tensor(torch::Tensor)>;

template <typename... Steps> Transform compose(Steps... steps) {
  return [=](torch::Tensor x) {
    ((x = steps(std::move(x))), ...);
    return x;
  };
}

struct Standardize {
  torch::Tensor mean, deviation;
  torch::Tensor operator()(torch::Tensor x) const {
    return x.sub(mean).div(deviation); // [[device-mixed-op]]
  }
};

struct StandardizeThere {
  torch::Tensor mean, deviation;
  torch::Tensor operator()(torch::Tensor x) const { return x.sub(mean).div(deviation); }
};

torch::Tensor toGpu(torch::Tensor x) { return x.to(torch::kCUDA); }

} // namespace

void composed_bad() {
  auto pipeline = compose([](torch::Tensor x) { return toGpu(x); },
                          Standardize{torch::full({1}, 0.4), torch::full({1}, 0.2)});
  pipeline(torch::rand({3, 4}));
}

void composed_ok() {
  auto pipeline = compose(StandardizeThere{torch::full({1}, 0.4), torch::full({1}, 0.2)},
                          [](torch::Tensor x) { return toGpu(x); });
  pipeline(torch::rand({3, 4}));
}

DT_MAIN(composed_bad, composed_ok)
