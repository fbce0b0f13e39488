#pragma once

#include <torch/script.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tts {

struct VoiceConfig {
  int64_t phones = 40, width = 16, mels = 20, fft = 32, hop = 8;
};

class PhoneEncoderImpl : public torch::nn::Module {
 public:
  explicit PhoneEncoderImpl(const VoiceConfig& config);
  torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& lengths);
  torch::Tensor forward_padded(const torch::Tensor& ids, const torch::Tensor& mask);
  torch::Tensor forward_one(const torch::Tensor& ids);

 private:
  int64_t width_;
  torch::nn::Embedding embed{nullptr};
  torch::nn::LSTM lstm{nullptr};
};
TORCH_MODULE(PhoneEncoder);

class MelDecoderImpl : public torch::nn::Module {
 public:
  explicit MelDecoderImpl(const VoiceConfig& config);
  torch::Tensor forward(const torch::Tensor& x);
  torch::Tensor refine(const torch::Tensor& mel);
  torch::Tensor autoregress(const torch::Tensor& memory, int64_t frames);
  torch::Tensor normalise(const torch::Tensor& mel) const { return (mel - mean_) / std_; }

 private:
  VoiceConfig config_;
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::GRUCell cell{nullptr};
  std::vector<torch::nn::Conv1d> postnet_;
  torch::nn::ModuleList heads;
  torch::Tensor mean_, std_;
};
TORCH_MODULE(MelDecoder);

// Back ends that turn mels into samples.
class Vocoder {
 public:
  virtual ~Vocoder() = default;
  virtual void to(torch::Device device) = 0;
  virtual torch::Tensor synthesize(const torch::Tensor& mel) = 0;
};

class SpectralVocoder : public Vocoder {
 public:
  explicit SpectralVocoder(const VoiceConfig& config);
  void to(torch::Device device) override;
  torch::Tensor synthesize(const torch::Tensor& mel) override;
  torch::Tensor spectrum(const torch::Tensor& wav) const;

 private:
  VoiceConfig config_;
  torch::Tensor basis_, window_;
};

class NeuralVocoder : public Vocoder {
 public:
  explicit NeuralVocoder(const std::string& file) : module_(torch::jit::load(file)) {}
  void to(torch::Device device) override { module_.to(device); }
  torch::Tensor synthesize(const torch::Tensor& mel) override { return module_.forward({mel}).toTensor().flatten(); }

 private:
  torch::jit::Module module_;
};

struct PcmChunk {
  const int16_t* samples = nullptr;
  int64_t count = 0;
};

class Voice {
 public:
  Voice(const VoiceConfig& config, torch::Device device);
  void move(torch::Device device);
  void set_vocoder(std::unique_ptr<Vocoder> vocoder);
  void load_speakers(const std::string& file);

  torch::Tensor speaker(const std::string& name);
  torch::Tensor styled(const torch::Tensor& hidden, const std::string& name);
  torch::Tensor mixed_speaker(int64_t a, int64_t b, double weight, const torch::Tensor& hidden) const;
  torch::Tensor regulate(const torch::Tensor& hidden, const torch::Tensor& durations) const;
  torch::Tensor regulate_fast(const torch::Tensor& hidden, const torch::Tensor& durations) const;
  torch::Tensor speak(const std::vector<int64_t>& phones);
  PcmChunk next_chunk(const torch::Tensor& wav);
  PcmChunk held_chunk(const torch::Tensor& wav);
  void stream(const torch::Tensor& wav, const std::function<void(const PcmChunk&)>& sink) const;

 private:
  VoiceConfig config_;
  torch::Device device_;
  PhoneEncoder encoder_;
  MelDecoder decoder_;
  std::unique_ptr<Vocoder> vocoder_;
  std::unordered_map<std::string, torch::Tensor> speakers_;
  torch::Tensor speaker_table_, held_;
};

struct TtsBatch {
  torch::Tensor ids, mel, stop;
  TtsBatch to(torch::Device device) const { return {ids.to(device), mel.to(device), stop}; }
};

class VoiceTrainer {
 public:
  VoiceTrainer(const VoiceConfig& config, torch::Device device);
  float step(const TtsBatch& batch);
  float mel_only(const TtsBatch& batch);
  float stop_loss(const TtsBatch& batch);
  float stop_accuracy(const TtsBatch& batch);

 private:
  torch::Tensor stop_logits(const torch::Tensor& mel) { return mel.mean(-1) * gain_; }
  torch::Device device_;
  MelDecoder decoder_;
  torch::Tensor gain_;
  torch::nn::BCEWithLogitsLoss criterion_;
};

} // namespace tts
