// Globals and statics of which a method changes one field; the others stay as they were made.
#include "../cases.h"

#include <torch/torch.h>

namespace {

class Normalizer {
public:
  static Normalizer &instance() {
    static Normalizer only;
    return only;
  }
  void place(torch::Device device) { mean = mean.to(device); }
  torch::Tensor apply(const torch::Tensor &x) const {
    return (x - mean) / deviation; // [[device-mixed-op]]
  }

private:
  torch::Tensor mean = torch::full({3, 1, 1}, 0.5), deviation = torch::full({3, 1, 1}, 0.25);
};

struct Range {
  void place(torch::Device device) { low = low.to(device); }
  torch::Tensor apply(const torch::Tensor &x) const {
    return (x - low) / width; // [[device-mixed-op]]
  }
  torch::Tensor low = torch::full({3, 1, 1}, 0.5), width = torch::full({3, 1, 1}, 0.25);
};
Range range;

struct Scale {
  void place(torch::Device device) { factor = factor.to(device); }
  torch::Tensor apply(const torch::Tensor &x) const { return x * factor; }
  torch::Tensor factor = torch::full({3, 1, 1}, 0.5);
};
Scale scale;

void singleton_bad() {
  Normalizer::instance().place(torch::kCUDA);
  auto y = Normalizer::instance().apply(torch::rand({3, 4, 4}, torch::kCUDA));
}

void global_bad() {
  range.place(torch::kCUDA);
  auto y = range.apply(torch::rand({3, 4, 4}, torch::kCUDA));
}

void global_ok() {
  scale.place(torch::kCUDA);
  auto y = scale.apply(torch::rand({3, 4, 4}, torch::kCUDA));
}

} // namespace

DT_MAIN(singleton_bad, global_bad, global_ok)
