#include "tts.h"

namespace tts {

namespace rnn = torch::nn::utils::rnn;

PhoneEncoderImpl::PhoneEncoderImpl(const VoiceConfig& config) : width_(config.width) {
  embed = register_module("embed", torch::nn::Embedding(config.phones, config.width));
  lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(config.width, config.width).batch_first(true)));
}

torch::Tensor PhoneEncoderImpl::forward(const torch::Tensor& ids, const torch::Tensor& lengths) {
  const auto packed = rnn::pack_padded_sequence(embed(ids), lengths.cpu(), true);
  return std::get<0>(rnn::pad_packed_sequence(std::get<0>(lstm->forward_with_packed_input(packed)), true));
}

torch::Tensor PhoneEncoderImpl::forward_padded(const torch::Tensor& ids, const torch::Tensor& mask) {
  const auto x = embed(ids);
  const auto lengths = mask.to(x.device()).sum(1).to(torch::kLong);
  const auto packed = rnn::pack_padded_sequence(x, lengths, true); // [[device-mixed-op]]
  return std::get<0>(rnn::pad_packed_sequence(std::get<0>(lstm->forward_with_packed_input(packed)), true));
}

torch::Tensor PhoneEncoderImpl::forward_one(const torch::Tensor& ids) {
  const auto x = embed(ids.unsqueeze(0));
  auto h0 = torch::zeros({1, 1, width_}, x.options());
  return std::get<0>(lstm(x, std::make_tuple(h0, torch::zeros_like(h0)))).squeeze(0);
}

MelDecoderImpl::MelDecoderImpl(const VoiceConfig& config) : config_(config) {
  in = register_module("in", torch::nn::Linear(config.width, config.width));
  out = register_module("out", torch::nn::Linear(config.width, config.mels));
  cell = register_module("cell", torch::nn::GRUCell(config.mels, config.width));
  for (int i = 0; i < 2; ++i)
    postnet_.push_back(torch::nn::Conv1d(torch::nn::Conv1dOptions(config.mels, config.mels, 3).padding(1)));
  heads = register_module("heads", torch::nn::ModuleList());
  for (int i = 0; i < 2; ++i)
    heads->push_back(torch::nn::Linear(config.mels, config.mels));
  mean_ = register_buffer("mean", torch::zeros({config.mels}));
  std_ = register_buffer("std", torch::ones({config.mels}));
}

torch::Tensor MelDecoderImpl::forward(const torch::Tensor& x) {
  auto mel = out(torch::tanh(in(x)));
  for (const auto& head : *heads)
    mel = mel + head->as<torch::nn::Linear>()->forward(mel);
  return normalise(mel);
}

torch::Tensor MelDecoderImpl::refine(const torch::Tensor& mel) {
  auto x = forward(mel).t().unsqueeze(0);
  for (auto& conv : postnet_)
    x = x + torch::tanh(conv(x)); // [[device-unregistered-tensor]]
  return x.squeeze(0).t();
}

torch::Tensor MelDecoderImpl::autoregress(const torch::Tensor& memory, int64_t frames) {
  auto previous = torch::zeros({1, config_.mels});
  auto state = memory.mean(0, true);
  std::vector<torch::Tensor> mels;
  for (int64_t i = 0; i < frames; ++i) {
    state = cell(previous, state); // [[device-mixed-op]]
    previous = out(state);
    mels.push_back(previous);
  }
  return torch::cat(mels);
}

SpectralVocoder::SpectralVocoder(const VoiceConfig& config) : config_(config) {
  basis_ = torch::rand({config.mels, config.hop});
  window_ = torch::hann_window(config.fft);
}

void SpectralVocoder::to(torch::Device device) { basis_ = basis_.to(device); }

torch::Tensor SpectralVocoder::synthesize(const torch::Tensor& mel) {
  const auto frames = mel.exp().matmul(basis_);
  return torch::tanh(frames.flatten());
}

torch::Tensor SpectralVocoder::spectrum(const torch::Tensor& wav) const {
  const auto padded = wav.to(basis_.device());
  const auto frames = padded.unfold(0, config_.fft, config_.hop);
  return (frames * window_).pow(2).sum(1); // [[device-mixed-op]]
}

} // namespace tts
