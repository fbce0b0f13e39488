#pragma once

#include "enhance.h"

#include <torch/torch.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace enh {

/// Triangular bands, one matrix for each number of bands.
class Filterbank {
 public:
  static const at::Tensor& bands(int64_t bins, int64_t bands);
  static at::Tensor bands_on(int64_t bins, int64_t bands, const at::Device& device);
};

struct GainNetImpl : torch::nn::Module {
  explicit GainNetImpl(const enh_config& config);
  at::Tensor forward(const at::Tensor& features);
  at::Tensor normalise(const at::Tensor& features) const;

  torch::nn::GRUCell cell{nullptr};
  torch::nn::Linear head{nullptr};
  at::Tensor mean, deviation;
  at::Tensor state;
};
TORCH_MODULE(GainNet);

class Spectrum {
 public:
  explicit Spectrum(const enh_config& config) : fft_(config.fft), hop_(config.hop) { window_ = at::hann_window(fft_); }
  at::Tensor analyse(const at::Tensor& frame) const;
  at::Tensor synthesise(const at::Tensor& bins) const;
  void to(const at::Device& device) { window_ = window_.to(device); }
  int64_t bins() const { return fft_ / 2 + 1; }

 private:
  int64_t fft_, hop_;
  at::Tensor window_;
};

class EchoCanceller {
 public:
  EchoCanceller(int64_t taps, const at::Device& device) : weights_(at::zeros({taps}, device)), device_(device) {}
  void reference(const at::Tensor& samples) { far_ = samples; }
  void to(const at::Device& device) {
    device_ = device;
    weights_ = weights_.to(device_);
  }
  bool ready() const { return far_.defined(); }
  at::Tensor cancel(const at::Tensor& near);
  at::Tensor estimate(const at::Tensor& near) const;

 private:
  at::Tensor weights_, far_;
  at::Device device_;
};

} // namespace enh

struct enh_model {
  explicit enh_model(const enh_config& c);
  enh_config config;
  at::Device device;
  enh::GainNet net;
};

struct enh_stream {
  explicit enh_stream(enh_model* m);
  void follow();
  enh_model* model;
  at::Device device;
  enh::Spectrum spectrum;
  enh::EchoCanceller echo;
  at::Tensor gains, noise, tail;
  const float* shown = nullptr;
  std::deque<float> pending;
};
