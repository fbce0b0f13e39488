#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace speech {

struct FrameOptions {
  int64_t sampleRate = 16000;
  int64_t fftSize = 64;
  int64_t hop = 16;
  float preEmphasis = 0.97f;
  float dither = 0.0f;
};

struct MelOptions {
  int64_t bins = 12;
  float low = 20.0f;
  float high = 7600.0f;
  bool logarithm = true;
};

inline float hertzToMel(float hertz) { return 1127.0f * std::log(1.0f + hertz / 700.0f); }

// Triangular filters, bins x (fft / 2 + 1), always made on the host.
torch::Tensor makeMelFilters(const MelOptions &mel, const FrameOptions &frame);

class MelSpectrogramImpl : public torch::nn::Module {
public:
  MelSpectrogramImpl(FrameOptions frame, MelOptions mel);
  torch::Tensor forward(const torch::Tensor &waveform);
  torch::Tensor power(const torch::Tensor &framed);
  const FrameOptions &frameOptions() const { return frame_; }

private:
  FrameOptions frame_;
  MelOptions mel_;
  torch::Tensor window_;
  torch::Tensor filters_;
};
TORCH_MODULE(MelSpectrogram);

// Cepstra of a mel spectrogram.
class CepstraImpl : public torch::nn::Module {
public:
  CepstraImpl(int64_t bins, int64_t coefficients) {
    const auto n = torch::arange(bins, torch::kFloat32), k = torch::arange(coefficients, torch::kFloat32).unsqueeze(1);
    transform_ = register_buffer("transform", torch::cos(M_PI / static_cast<double>(bins) * (n + 0.5) * k));
    lifter_ = register_buffer("lifter", 1 + 11.0 * torch::sin(M_PI * torch::arange(coefficients) / 22.0));
  }
  torch::Tensor forward(const torch::Tensor &mel) { return torch::matmul(mel, transform_.t()) * lifter_; }

private:
  torch::Tensor transform_, lifter_;
};
TORCH_MODULE(Cepstra);

// Mean and variance of a speaker, over all of what was heard.
class SpeakerStatistics {
public:
  SpeakerStatistics(int64_t dimension, torch::Device device);
  void accumulate(const torch::Tensor &frames);
  void accumulateSquares(const torch::Tensor &frames);
  torch::Tensor apply(const torch::Tensor &frames) const;
  torch::Tensor mean() const { return sum_ / std::max<int64_t>(1, count_); }
  void reset();

private:
  int64_t dimension_, count_ = 0;
  torch::Device device_;
  torch::Tensor sum_, squares_;
};

// Features of sound that arrives in pieces.
class StreamingExtractor {
public:
  StreamingExtractor(FrameOptions frame, MelOptions mel, torch::Device device);

  torch::Tensor feed(const std::vector<int16_t> &samples);
  torch::Tensor feedFloat(std::vector<float> &samples);
  torch::Tensor feedShared(std::vector<float> &samples);
  torch::Tensor appendTail(const torch::Tensor &chunk);
  torch::Tensor emphasize(const torch::Tensor &waveform) const;
  torch::Tensor dithered(const torch::Tensor &waveform) const;
  torch::Tensor deltas(const torch::Tensor &features) const;
  torch::Tensor contextWindows(const torch::Tensor &features) const;
  torch::Tensor filterEnergies(const torch::Tensor &spectrum);
  torch::Tensor recent(int64_t count) const;
  std::vector<float> energies(const torch::Tensor &waveform) const;
  bool voiced(const torch::Tensor &waveform) const;
  void flush();

private:
  torch::Tensor filtersOn(const torch::Device &device);

  FrameOptions frame_;
  MelOptions mel_;
  torch::Device device_;
  MelSpectrogram spectrogram_{nullptr};
  torch::Tensor tail_;
  std::deque<torch::Tensor> history_;
  std::unordered_map<std::string, torch::Tensor> filterCache_;
};

} // namespace speech
