// A device that sits in a (nested) configuration struct, and tensors in nested structs.
#include "../cases.h"
#include <torch/torch.h>

struct HardwareConfig {
  torch::Device device = torch::kCPU;
  int workers = 2;
};

struct TrainConfig {
  HardwareConfig hw;
  double lr = 1e-3;
  int64_t hidden = 16;
};

struct Moments {
  torch::Tensor mean;
  torch::Tensor stddev;
};

struct DataBundle {
  Moments stats;
  torch::Tensor samples;
};

static void configured_device_ignored_for_stats_bad() {
  TrainConfig cfg;
  cfg.hw.device = torch::Device(torch::kCUDA);
  DataBundle data;
  data.samples = torch::randn({32, 4}).to(cfg.hw.device);
  data.stats.mean = torch::zeros({4});
  data.stats.stddev = torch::ones({4}).to(cfg.hw.device);
  auto centred = data.samples - data.stats.mean; // [[device-mixed-op]]
  (void)centred;
}

static void configured_device_used_for_stats_ok() {
  TrainConfig cfg;
  cfg.hw.device = torch::Device(torch::kCUDA);
  DataBundle data;
  data.samples = torch::randn({32, 4}).to(cfg.hw.device);
  data.stats.mean = torch::zeros({4}, cfg.hw.device);
  data.stats.stddev = torch::ones({4}).to(cfg.hw.device);
  auto centred = (data.samples - data.stats.mean) / data.stats.stddev;
  (void)centred;
}

// Nobody overrides the default: the whole program stays on the CPU.
static void default_device_is_cpu_ok() {
  TrainConfig cfg;
  auto x = torch::randn({32, 4}).to(cfg.hw.device);
  auto w = torch::randn({4, 2});
  auto y = x.mm(w);
  TORCH_CHECK(y.size(1) == 2);
}

static void default_device_overridden_late_bad() {
  TrainConfig cfg;
  auto w = torch::randn({4, 2}, cfg.hw.device);
  cfg.hw.device = torch::Device(torch::kCUDA);
  auto x = torch::randn({32, 4}, cfg.hw.device);
  auto y = x.mm(w); // [[device-mixed-op]]
  TORCH_CHECK(y.size(1) == 2);
}

static TrainConfig gpu_config(int index) {
  TrainConfig cfg;
  cfg.hw.device = torch::Device(torch::kCUDA, index);
  cfg.hidden = 8;
  return cfg;
}

static void two_configs_two_devices_bad() {
  const TrainConfig teacher = gpu_config(0);
  const TrainConfig student = gpu_config(1);
  auto soft = torch::rand({4, 10}, teacher.hw.device);
  auto hard = torch::rand({4, 10}, student.hw.device);
  auto gap = soft - hard; // [[device-mixed-op]]
  TORCH_CHECK(gap.defined());
}

static void two_configs_one_device_ok() {
  const TrainConfig teacher = gpu_config(1);
  const TrainConfig student = gpu_config(1);
  auto soft = torch::rand({4, 10}, teacher.hw.device);
  auto hard = torch::rand({4, 10}, student.hw.device);
  auto gap = soft - hard;
  TORCH_CHECK(gap.defined());
}

DT_MAIN(configured_device_ignored_for_stats_bad, configured_device_used_for_stats_ok,
        default_device_is_cpu_ok, default_device_overridden_late_bad, two_configs_two_devices_bad,
        two_configs_one_device_ok)
