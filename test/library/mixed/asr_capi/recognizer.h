#pragma once

#include "asr.h"

#include <torch/script.h>
#include <torch/torch.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace asr {

/// Log-mel features; the filters are made once for each model.
class Frontend {
public:
  Frontend(const asr_model_config_t &config, torch::Device device);
  torch::Tensor features(const torch::Tensor &samples) const;
  torch::Tensor power(const torch::Tensor &samples) const;
  void move(const torch::Device &device);

private:
  int64_t frame_;
  torch::Device device_;
  torch::Tensor window_, filters_;
};

struct AcousticModelImpl : torch::nn::Module {
  AcousticModelImpl(int64_t bins, int64_t hidden, int64_t vocabulary)
      : cell(register_module("cell", torch::nn::GRUCell(bins, hidden))),
        head(register_module("head", torch::nn::Linear(hidden, vocabulary))) {}
  torch::nn::GRUCell cell;
  torch::nn::Linear head;
};
TORCH_MODULE(AcousticModel);

class Recognizer {
public:
  explicit Recognizer(const asr_model_config_t &config);
  void move(int32_t device);

  asr_model_config_t config;
  torch::Device device;
  Frontend frontend;
  AcousticModel acoustic{nullptr};
  std::unique_ptr<torch::jit::Module> lm, punctuation;
};

class Session {
public:
  explicit Session(std::shared_ptr<Recognizer> model);
  void push(const float *samples, size_t count);
  void reset();
  void rewind();
  std::vector<int64_t> decode();
  void setHotwords(const float *weights, size_t count);
  void setMask(const int64_t *tokens, size_t count);

  Recognizer &model() { return *model_; }
  const torch::Tensor &logits() const { return logits_; }
  const torch::Tensor &features() const { return features_; }
  torch::Tensor &state() { return state_; }
  torch::Tensor tokenTensor() const;
  const float *keepLogits(size_t *count);

private:
  void advance(const torch::Tensor &frames);

  std::shared_ptr<Recognizer> model_;
  torch::Tensor state_, features_, logits_, bias_, masked_, penalty_, kept_;
};

inline torch::Device pick(int32_t index) {
  return index < 0 ? torch::Device(torch::kCPU) : torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

} // namespace asr
