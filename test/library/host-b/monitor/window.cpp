#include "window.h"

namespace monitor {

WindowBuffer::WindowBuffer(int64_t length, int64_t channels, torch::Device device)
    : length_(length), channels_(channels), device_(device) {
  TORCH_CHECK(length_ > 1 && channels_ > 0, "a window needs a length and channels");
  ring_ = torch::zeros({length_, channels_}, torch::TensorOptions().dtype(torch::kFloat32).device(device_));
  staging_ = torch::empty({channels_}, torch::TensorOptions().dtype(torch::kFloat32).pinned_memory(device_.is_cuda()));
  taper_ = torch::hann_window(length_).unsqueeze(1);
}

void WindowBuffer::push(const std::vector<float> &sample) {
  TORCH_CHECK(static_cast<int64_t>(sample.size()) == channels_, "expected ", channels_, " values, got ", sample.size());
  std::copy(sample.begin(), sample.end(), staging_.data_ptr<float>());
  ring_[next_].copy_(staging_, /*non_blocking=*/true);
  next_ = (next_ + 1) % length_;
  ++count_;
}

void WindowBuffer::pushMany(const torch::Tensor &samples) {
  for (const auto &sample : samples.unbind(0)) {
    ring_[next_] = sample;
    next_ = (next_ + 1) % length_;
    ++count_;
  }
}

torch::Tensor WindowBuffer::ordered() const {
  if (next_ == 0)
    return ring_.clone();
  return torch::cat({ring_.slice(0, next_), ring_.slice(0, 0, next_)});
}

torch::Tensor WindowBuffer::latest(int64_t count) const {
  const auto index = torch::arange(next_ - count, next_).remainder(length_);
  return ring_.index({index});
}

torch::Tensor WindowBuffer::detrended() const {
  const auto window = ordered();
  const auto t = torch::arange(length_, window.options()).unsqueeze(1) - 0.5 * static_cast<double>(length_ - 1);
  const auto slope = (t * window).sum(0, true) / t.pow(2).sum();
  return window - window.mean(0, true) - slope * t;
}

torch::Tensor WindowBuffer::smoothed(double factor) const {
  const auto steps = torch::arange(length_, 0, -1, torch::kFloat32);
  const auto weights = torch::pow(1 - factor, steps).unsqueeze(1);
  return (ordered() * weights).sum(0) / weights.sum(); // [[device-mixed-op]]
}

torch::Tensor WindowBuffer::tapered() const {
  auto taper = taper_;
  if (taper.device() != device_)
    taper = taper.to(device_);
  return ordered() * taper;
}

torch::Tensor WindowBuffer::download() const { return ordered().to(torch::kCPU); }

torch::Tensor WindowBuffer::downloadPinned() const {
  const auto window = ordered().contiguous();
  auto host = window.pin_memory(); // [[device-host-access]]
  return host.to(torch::kFloat64);
}

float WindowBuffer::newest(int64_t channel) const {
  const auto row = ring_[(next_ + length_ - 1) % length_];
  return row[channel].item<float>();
}

void ScoreCache::put(const std::string &key, const torch::Tensor &score) {
  const auto found = index_.find(key);
  if (found != index_.end())
    order_.erase(found->second);
  order_.emplace_front(key, score.detach().to(torch::kCPU));
  index_[key] = order_.begin();
  if (order_.size() > capacity_) {
    index_.erase(order_.back().first);
    order_.pop_back();
  }
}

bool ScoreCache::get(const std::string &key, torch::Tensor &score) {
  const auto found = index_.find(key);
  if (found == index_.end())
    return false;
  order_.splice(order_.begin(), order_, found->second);
  score = found->second->second;
  return true;
}

torch::Tensor ScoreCache::merged(const std::vector<std::string> &keys) {
  std::vector<torch::Tensor> scores;
  torch::Tensor score;
  for (const auto &key : keys)
    if (get(key, score))
      scores.push_back(score);
  return scores.empty() ? torch::zeros({0}) : torch::stack(scores);
}

} // namespace monitor
