#pragma once

#include <torch/torch.h>

#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace monitor {

// The newest values of a sensor, in a ring on the device that scores it.
class WindowBuffer {
public:
  WindowBuffer(int64_t length, int64_t channels, torch::Device device);

  void push(const std::vector<float> &sample);
  void pushMany(const torch::Tensor &samples);
  torch::Tensor ordered() const;
  torch::Tensor latest(int64_t count) const;
  torch::Tensor detrended() const;
  torch::Tensor smoothed(double factor) const;
  torch::Tensor tapered() const;
  torch::Tensor download() const;
  torch::Tensor downloadPinned() const;
  float newest(int64_t channel) const;
  bool full() const { return count_ >= length_; }

private:
  int64_t length_, channels_, next_ = 0, count_ = 0;
  torch::Device device_;
  torch::Tensor ring_;
  torch::Tensor staging_;
  torch::Tensor taper_;
};

// Scores that were computed lately, least recently used ones go first. Lives on the host.
class ScoreCache {
public:
  explicit ScoreCache(size_t capacity) : capacity_(capacity) {}
  void put(const std::string &key, const torch::Tensor &score);
  bool get(const std::string &key, torch::Tensor &score);
  torch::Tensor merged(const std::vector<std::string> &keys);
  size_t size() const { return order_.size(); }

private:
  size_t capacity_;
  std::list<std::pair<std::string, torch::Tensor>> order_;
  std::unordered_map<std::string, std::list<std::pair<std::string, torch::Tensor>>::iterator> index_;
};

} // namespace monitor
