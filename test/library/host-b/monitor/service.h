#pragma once

#include "window.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <mutex>

namespace monitor {

struct DetectorConfig {
  int64_t length = 8;
  int64_t channels = 3;
  int64_t hidden = 4;
  double quantile = 0.95;
  size_t cache = 16;
};

class AutoencoderImpl : public torch::nn::Module {
public:
  explicit AutoencoderImpl(const DetectorConfig &config) {
    encode_ = register_module("encode", torch::nn::Linear(config.channels, config.hidden));
    decode_ = register_module("decode", torch::nn::Linear(config.hidden, config.channels));
  }
  torch::Tensor forward(const torch::Tensor &x) { return decode_->forward(torch::tanh(encode_->forward(x))); }

private:
  torch::nn::Linear encode_{nullptr}, decode_{nullptr};
};
TORCH_MODULE(Autoencoder);

// One GPU: a replica of the model and the windows of the sensors that were given to it.
class Worker {
public:
  Worker(DetectorConfig config, torch::Device device);

  void addSensor(const std::string &name);
  WindowBuffer &sensor(const std::string &name);
  torch::Tensor score(const std::string &name);
  torch::Tensor scoreCached(const std::string &name);
  torch::Tensor scoreAll();
  torch::Tensor compare(const std::string &name, const torch::Tensor &reference);
  torch::Tensor batchOf(const std::vector<torch::Tensor> &windows) const;
  torch::Tensor batchOnStream(const torch::Tensor &window);
  double fit(const torch::Tensor &windows, int64_t epochs);
  double validate(const torch::Tensor &windows);
  torch::Tensor normalizedScore(const std::string &name);
  bool alarm(const std::string &name);
  std::vector<bool> alarms(const std::vector<float> &limits);
  void calibrate(const torch::Tensor &windows);
  torch::Tensor quantiles(const torch::Tensor &windows, const std::vector<float> &levels);
  void loadBaseline(const std::string &file);
  torch::Tensor deviation(const std::string &name);
  float worst() const;
  const torch::Device &device() const { return device_; }

private:
  DetectorConfig config_;
  torch::Device device_;
  Autoencoder model_{nullptr};
  c10::cuda::CUDAStream stream_;
  std::map<std::string, WindowBuffer> sensors_;
  ScoreCache cache_;
  torch::Tensor limit_;
  torch::Tensor mean_, deviation_;
  torch::Tensor baseline_;
  torch::Tensor history_;
};

class Service {
public:
  explicit Service(DetectorConfig config) : config_(config) {}
  void start();
  void startWithSpare();
  Worker &workerOf(const std::string &sensor);
  size_t workers() const { return workers_.size(); }
  torch::Tensor totals(const std::vector<std::string> &sensors);
  torch::Tensor pooled(const std::vector<std::string> &sensors);

private:
  DetectorConfig config_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::string, size_t> placement_;
  std::mutex mutex_;
};

} // namespace monitor
