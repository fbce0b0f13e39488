// Members that are lists, moved element by element, and memory of the host beside a handle.
#include "../cases.h"

#include <torch/torch.h>
#include <vector>

class Anchors {
public:
  explicit Anchors(const std::vector<double> &sizes) {
    for (double size : sizes) {
      areas.push_back(torch::full({1}, size));
      scales.push_back(torch::full({1}, size));
      bases.push_back(torch::full({1}, size));
    }
  }

  void to(const torch::Device &device) {
    for (auto &area : areas)
      area = area.to(device);
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = scales[i].to(device);
  }

  torch::Tensor relative(const torch::Tensor &boxes, size_t level) const {
    return boxes / areas[level] * scales[level];
  }

  torch::Tensor shifted(const torch::Tensor &feature, size_t level) const {
    auto steps = torch::arange(feature.size(0), feature.options());
    return steps + bases[level]; // [[device-mixed-op]]
  }

private:
  std::vector<torch::Tensor> areas, scales, bases;
};

struct Handle {
  torch::Tensor value;
};

extern "C" {

void add_bias(Handle *handle, const float *bias, int64_t count) {
  auto host = torch::from_blob(const_cast<float *>(bias), {count}, torch::kFloat);
  handle->value.add_(host); // [[device-mixed-op]]
}

void add_moved_bias(Handle *handle, const float *bias, int64_t count) {
  auto host = torch::from_blob(const_cast<float *>(bias), {count}, torch::kFloat);
  handle->value.add_(host.to(handle->value.device()));
}
}

#ifdef DT_RUN
static Anchors onGpu() {
  Anchors anchors({1.0, 2.0});
  anchors.to(torch::kCUDA);
  return anchors;
}

static void moved_elements_ok() { onGpu().relative(torch::ones({3}, torch::kCUDA), 1); }
static void left_elements_bad() { onGpu().shifted(torch::ones({3}, torch::kCUDA), 1); }

static void host_memory_bad() {
  Handle handle{torch::ones({2}, torch::kCUDA)};
  const std::vector<float> bias{1, 2};
  add_bias(&handle, bias.data(), 2);
}

static void moved_memory_ok() {
  Handle handle{torch::ones({2}, torch::kCUDA)};
  const std::vector<float> bias{1, 2};
  add_moved_bias(&handle, bias.data(), 2);
}

DT_MAIN(moved_elements_ok, left_elements_bad, host_memory_bad, moved_memory_ok)
#endif
