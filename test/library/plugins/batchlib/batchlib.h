#pragma once

#include <torch/torch.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace batchlib {

using torch::Tensor;
using Value = std::variant<Tensor, int64_t, double, std::string>;
using Sample = std::map<std::string, Value>;

struct Batch {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::vector<std::string>> texts;
  std::optional<Tensor> lengths;

  Tensor& operator[](const std::string& name) { return tensors.at(name); }
  const Tensor& at(const std::string& name) const { return tensors.at(name); }
  Batch to(torch::Device device, bool non_blocking = true) const;
  Batch& pin();
  int64_t size() const { return tensors.begin()->second.size(0); }
};

/// What is done to a batch, one after another.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual Batch operator()(Batch batch) = 0;
  virtual void set_device(const torch::Device&) {}
};

class Normalize : public Transform {
 public:
  Normalize(std::string field, std::vector<float> mean, std::vector<float> deviation);
  Batch operator()(Batch batch) override;
  void set_device(const torch::Device& device) override;
  Tensor undo(const Tensor& images) const;

 private:
  std::string field_;
  Tensor mean_, deviation_;
};

class ColorJitter : public Transform {
 public:
  explicit ColorJitter(double strength) : strength_(strength), luma_(torch::tensor({0.299f, 0.587f, 0.114f})) {}
  Batch operator()(Batch batch) override;
  Tensor grayscale(const Tensor& images) const;

 private:
  double strength_;
  Tensor luma_;
};

class MixUp : public Transform {
 public:
  MixUp(double alpha, int64_t classes) : alpha_(alpha), classes_(classes) {}
  Batch operator()(Batch batch) override;
  Tensor lambdas(int64_t count) const { return torch::empty({count}).uniform_(alpha_ / 2, 1 - alpha_ / 2); }

 private:
  double alpha_;
  int64_t classes_;
};

class RandomErase : public Transform {
 public:
  RandomErase(double chance, int64_t edge) : chance_(chance), edge_(edge) {}
  Batch operator()(Batch batch) override;

 private:
  double chance_;
  int64_t edge_;
};

class Compose : public Transform {
 public:
  template <typename T, typename... A> Compose& add(A&&... arguments) {
    steps_.push_back(std::make_unique<T>(std::forward<A>(arguments)...));
    return *this;
  }
  void set_device(const torch::Device& device) override {
    for (auto& step : steps_)
      step->set_device(device);
  }
  Batch operator()(Batch batch) override {
    for (auto& step : steps_)
      batch = (*step)(std::move(batch));
    return batch;
  }

 private:
  std::vector<std::unique_ptr<Transform>> steps_;
};

Batch collate(const std::vector<Sample>& samples);
std::pair<Tensor, Tensor> pad(const std::vector<Tensor>& sequences, double value = 0);

/// Loads ahead, and moves what it loaded.
class Prefetcher {
 public:
  using Source = std::function<std::optional<std::vector<Sample>>()>;
  Prefetcher(Source source, torch::Device device, std::shared_ptr<Transform> transform = nullptr);
  std::optional<Batch> next();
  std::optional<Batch> next_packed();

 private:
  std::optional<Batch> load();
  Source source_;
  torch::Device device_;
  std::shared_ptr<Transform> transform_;
  std::future<std::optional<Batch>> ahead_;
};

/// Class counts of what went by.
class LabelStats {
 public:
  explicit LabelStats(int64_t classes) : counts_(torch::zeros({classes})) {}
  void update(const Tensor& labels);
  Tensor balanced_loss(const Tensor& logits, const Tensor& labels) const;
  Tensor balanced_loss_here(const Tensor& logits, const Tensor& labels) const;
  std::vector<float> counts() const;

 private:
  Tensor counts_;
};

/// Running statistics of images, as training pipelines export them.
struct Welford {
  Tensor mean, m2;
  int64_t count = 0;
  void update(const Tensor& images);
  void merge(const Welford& other);
  const float* raw() const;
};

std::vector<uint8_t> to_bytes(const Tensor& image);
void fill_rows(std::vector<std::vector<float>>& rows, const Tensor& values);

} // namespace batchlib
