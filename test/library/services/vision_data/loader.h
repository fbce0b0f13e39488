#pragma once

#include <torch/torch.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace vision {

struct Sample {
  torch::Tensor image; // [3, h, w], 0 to 1
  torch::Tensor boxes; // [n, 4]
  int64_t label = 0;
};

struct Batch {
  torch::Tensor images, labels;
  torch::Tensor boxes;  // of all images, one after the other
  torch::Tensor counts; // boxes of each image
};

Sample decode(const std::vector<uint8_t>& rgb, int64_t height, int64_t width);
Batch collate(const std::vector<Sample>& samples);

// Augmentations that run on whole batches, on the device of the batch.
class BatchAugment {
 public:
  using Step = std::function<torch::Tensor(const torch::Tensor&)>;
  BatchAugment();
  torch::Tensor apply(const std::string& name, const torch::Tensor& images) const;
  torch::Tensor apply_all(const std::vector<std::string>& names, torch::Tensor images) const;
  static std::pair<torch::Tensor, torch::Tensor> mixup(const torch::Tensor& images, const torch::Tensor& targets);

 private:
  std::map<std::string, Step> steps_;
};

// Loads ahead in a thread; next() has the batch on the GPU.
class Prefetcher {
 public:
  Prefetcher(std::function<bool(Batch&)> source, size_t depth, bool pin);
  ~Prefetcher();
  bool next(Batch& out);
  static void upload(Batch& batch);
  static Batch upload_pinned(const Batch& batch);
  static Batch recycle(const Batch& batch);

 private:
  void work();
  std::function<bool(Batch&)> source_;
  size_t depth_;
  bool pin_, stop_ = false, ended_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<Batch> ready_;
  std::thread thread_;
};

std::vector<torch::Tensor> boxes_of_images(const Batch& batch);
std::vector<torch::Tensor> crops(const Batch& batch);

} // namespace vision
