#pragma once

#include <torch/script.h>
#include <torch/torch.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace serving {

struct SessionOptions {
  std::string modelPath;
  std::string priorPath;
  int gpuId = -1; // below 0: run on the CPU
  int64_t maxBatch = 64;
  bool warmUp = false;
};

struct Ranked {
  int64_t label;
  float score;
};

// One loaded TorchScript model and everything that is needed to turn rows of floats into scores.
class Session {
public:
  explicit Session(SessionOptions options);

  void open();
  void reload(const std::string &path);

  void setNormalization(const float *mean, const float *scale, int64_t n);
  void setLabelMask(const std::vector<int64_t> &allowed, int64_t classes);
  void setTemperature(float value) { temperature_ = torch::tensor(value); }
  void loadPrior(const std::string &path);
  void loadBias(const std::string &path);

  torch::Tensor logits(const torch::Tensor &rows);
  torch::Tensor normalized(const torch::Tensor &rows) const;
  torch::Tensor calibrated(const torch::Tensor &rows);
  torch::Tensor withPrior(const torch::Tensor &rows);
  torch::Tensor withBias(const torch::Tensor &rows);
  torch::Tensor masked(const torch::Tensor &rows);
  std::vector<Ranked> topK(const torch::Tensor &rows, int64_t k);

  int64_t features() const { return features_; }
  torch::Device device() const { return device_; }
  bool ready() const { return ready_; }

private:
  torch::Tensor upload(const torch::Tensor &rows) const;

  SessionOptions options_;
  torch::jit::Module module_;
  torch::Device device_{torch::kCPU};
  torch::Tensor mean_, scale_;
  torch::Tensor labelMask_;
  torch::Tensor prior_, bias_;
  torch::Tensor temperature_ = torch::tensor(1.0f);
  int64_t features_ = 0;
  bool ready_ = false;
  mutable std::mutex mutex_;
};

} // namespace serving
