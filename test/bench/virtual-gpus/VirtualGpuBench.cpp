// usage: LD_PRELOAD=libvirtual_cuda.so VIRTUAL_GPUS=1 virtual_gpu_bench [STEPS] [LIMIT]
//
// Trains an MLP and a small CNN on the CPU and on a virtual GPU in turns, so that both see the same
// machine, and prints the median wall time of a step and the ratio of the two. Fails when a ratio is above
// LIMIT (default 1.25). The ratio of processor time is printed too: on a busy machine the wall time also
// holds the waiting for a processor, which the virtual GPU's autograd thread does once more per step.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

namespace nn = torch::nn;

namespace {

struct Cost {
  double wall, processor; // milliseconds
};

double processorMilliseconds() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Cost costOf(const std::function<void()> &run) {
  auto start = std::chrono::steady_clock::now();
  double processor = processorMilliseconds();
  run();
  std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  return {wall.count(), processorMilliseconds() - processor};
}

// Median of one kind of cost.
double median(const std::vector<Cost> &costs, double Cost::*kind) {
  std::vector<double> values;
  for (const Cost &cost : costs)
    values.push_back(cost.*kind);
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(),
                        nn::Linear(128, 10));
}

nn::Sequential cnn() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)), nn::BatchNorm2d(16), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Flatten(), nn::Linear(32 * 7 * 7, 10));
}

// A model, its optimizer and one batch on one device.
class Training {
public:
  Training(nn::Sequential model, torch::IntArrayRef shape, torch::Device device) : model_(std::move(model)) {
    model_->to(device);
    optimizer_ = std::make_unique<torch::optim::Adam>(model_->parameters(), 1e-3);
    data_ = torch::randn(shape).to(device);
    target_ = torch::randint(0, 10, {shape[0]}, torch::kLong).to(device);
  }

  void step() {
    optimizer_->zero_grad();
    auto loss = nn::functional::cross_entropy(model_->forward(data_), target_);
    loss.backward();
    optimizer_->step();
    last_ = loss.item<float>();
  }

  float loss() const { return last_; }

private:
  nn::Sequential model_;
  std::unique_ptr<torch::optim::Adam> optimizer_;
  torch::Tensor data_, target_;
  float last_ = 0;
};

bool compare(const char *name, const std::function<nn::Sequential()> &make, torch::IntArrayRef shape,
             int steps, double limit) {
  torch::manual_seed(1);
  Training onCpu(make(), shape, torch::kCPU);
  torch::manual_seed(1);
  Training onGpu(make(), shape, torch::Device(torch::kCUDA, 0));
  std::vector<Cost> cpuCosts, gpuCosts;
  for (int step = 0; step < steps; ++step) {
    Cost cpu = costOf([&] { onCpu.step(); });
    Cost gpu = costOf([&] { onGpu.step(); });
    // The first steps build caches on both sides.
    if (step < steps / 10)
      continue;
    cpuCosts.push_back(cpu);
    gpuCosts.push_back(gpu);
  }
  double cpu = median(cpuCosts, &Cost::wall), gpu = median(gpuCosts, &Cost::wall);
  double processor = median(gpuCosts, &Cost::processor) / median(cpuCosts, &Cost::processor);
  std::printf("%s: cpu %.3f ms, virtual gpu %.3f ms, ratio %.3f (limit %.2f), of processor time %.3f, "
              "losses %.5f and %.5f\n",
              name, cpu, gpu, gpu / cpu, limit, processor, static_cast<double>(onCpu.loss()),
              static_cast<double>(onGpu.loss()));
  return gpu / cpu <= limit;
}

} // namespace

int main(int argc, char **argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 300;
  double limit = argc > 2 ? std::atof(argv[2]) : 1.25;
  if (steps < 10 || limit <= 0) {
    std::fprintf(stderr, "usage: %s [STEPS, at least 10] [LIMIT]\n", argv[0]);
    return 2;
  }
  if (!torch::cuda::is_available()) {
    std::fprintf(stderr, "no virtual GPU: preload libvirtual_cuda.so and set VIRTUAL_GPUS=1\n");
    return 2;
  }
  torch::set_num_threads(1);
  bool good = compare("mlp, batch 64", mlp, {64, 784}, steps, limit);
  good &= compare("cnn, batch 32", cnn, {32, 1, 28, 28}, steps / 3, limit);
  // So little work that it is all overhead; shown, not judged.
  compare("mlp, batch 4", mlp, {4, 784}, steps, limit);
  return good ? 0 : 1;
}
