#include "recognizer.h"

#include <cmath>

namespace asr {

Frontend::Frontend(const asr_model_config_t &config, torch::Device device)
    : frame_(config.frame_length), device_(device),
      window_(torch::hann_window(config.frame_length, torch::TensorOptions(torch::kFloat).device(device))) {
  const int64_t bins = frame_ / 2 + 1;
  auto centers = torch::linspace(0, static_cast<double>(bins - 1), config.mel_bins + 2);
  auto bin = torch::arange(bins, torch::kFloat).unsqueeze(1);
  auto width = (centers[2] - centers[0]) / 2;
  filters_ = torch::relu(1 - (bin - centers.slice(0, 1, config.mel_bins + 1)).abs() / width).to(device_);
}

torch::Tensor Frontend::power(const torch::Tensor &samples) const {
  auto frames = samples.to(device_).unfold(0, frame_, frame_ / 2) * window_;
  return torch::abs(torch::fft::rfft(frames)).pow(2);
}

torch::Tensor Frontend::features(const torch::Tensor &samples) const {
  return torch::log(torch::matmul(power(samples), filters_) + 1e-6); // [[device-mixed-op]]
}

void Frontend::move(const torch::Device &device) {
  device_ = device;
  window_ = window_.to(device_);
}

Recognizer::Recognizer(const asr_model_config_t &c) : config(c), device(pick(c.device)), frontend(c, pick(c.device)) {
  acoustic = AcousticModel(c.mel_bins, c.hidden, c.vocabulary);
  acoustic->to(device);
  acoustic->eval();
}

void Recognizer::move(int32_t index) {
  device = pick(index);
  config.device = index;
  acoustic->to(device);
  frontend.move(device);
}

Session::Session(std::shared_ptr<Recognizer> model) : model_(std::move(model)) {
  state_ = torch::zeros({1, model_->config.hidden}, model_->device);
  penalty_ = torch::tensor(model_->config.blank_penalty);
}

void Session::push(const float *samples, size_t count) {
  torch::NoGradGuard no_grad;
  auto audio = torch::from_blob(const_cast<float *>(samples), {static_cast<int64_t>(count)}, torch::kFloat);
  features_ = model_->frontend.features(audio);
  advance(features_);
}

void Session::advance(const torch::Tensor &frames) {
  std::vector<torch::Tensor> rows;
  rows.reserve(static_cast<size_t>(frames.size(0)));
  for (int64_t t = 0; t < frames.size(0); ++t) {
    state_ = model_->acoustic->cell(frames[t].unsqueeze(0), state_); // [[device-mixed-op]]
    rows.push_back(model_->acoustic->head(state_));
  }
  if (!rows.empty())
    logits_ = torch::cat(rows);
}

void Session::reset() {
  logits_ = torch::Tensor();
  features_ = torch::Tensor();
  state_ = torch::zeros({1, model_->config.hidden});
}

void Session::rewind() {
  torch::NoGradGuard no_grad;
  state_.zero_();
  logits_.reset();
}

void Session::setHotwords(const float *weights, size_t count) {
  TORCH_CHECK(static_cast<int32_t>(count) == model_->config.vocabulary, "one weight for each token");
  bias_ = torch::from_blob(const_cast<float *>(weights), {static_cast<int64_t>(count)}, torch::kFloat).clone();
}

void Session::setMask(const int64_t *tokens, size_t count) {
  masked_ = torch::from_blob(const_cast<int64_t *>(tokens), {static_cast<int64_t>(count)}, torch::kLong).clone();
}

std::vector<int64_t> Session::decode() {
  torch::NoGradGuard no_grad;
  if (!logits_.defined())
    return {};
  auto scores = logits_.clone();
  if (masked_.defined())
    scores.index_put_({torch::indexing::Slice(), masked_}, -1e9);
  if (bias_.defined())
    scores = scores + bias_; // [[device-mixed-op]]
  scores.select(1, 0).sub_(penalty_);
  const auto best = scores.argmax(1).to(torch::kCPU);
  const auto token = best.accessor<int64_t, 1>();
  std::vector<int64_t> result;
  int64_t previous = 0;
  for (int64_t t = 0; t < token.size(0); ++t) {
    if (token[t] != 0 && token[t] != previous)
      result.push_back(token[t]);
    previous = token[t];
  }
  return result;
}

torch::Tensor Session::tokenTensor() const {
  TORCH_CHECK(logits_.defined(), "nothing was decoded");
  return logits_.argmax(1);
}

const float *Session::keepLogits(size_t *count) {
  kept_ = logits_.to(torch::kCPU).contiguous();
  *count = static_cast<size_t>(kept_.numel());
  return kept_.data_ptr<float>();
}

} // namespace asr
