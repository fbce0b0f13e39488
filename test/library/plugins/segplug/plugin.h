#pragma once

#include <torch/script.h>
#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace segplug {

struct Frame {
  const uint8_t* pixels = nullptr;
  int64_t width = 0, height = 0;
};

struct Instance {
  float box[4];
  float score = 0;
  int64_t label = 0;
  std::vector<uint8_t> mask;
};

struct Settings {
  std::string device = "cpu";
  double threshold = 0.3, overlap = 0.5;
  int64_t classes = 4, prototypes = 3;
  std::optional<std::vector<float>> class_weights;
};

/// What a plug-in has to do. Plug-ins are made by name.
class Segmenter {
 public:
  virtual ~Segmenter() = default;
  virtual void configure(const Settings& settings) = 0;
  virtual std::vector<Instance> process(const Frame& frame) = 0;
};

class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Segmenter>()>;
  static Registry& instance();
  bool add(const std::string& name, Factory factory);
  std::unique_ptr<Segmenter> make(const std::string& name) const;

 private:
  std::map<std::string, Factory> factories_;
};

#define SEGPLUG_REGISTER(name, Class) \
  static const bool registered_##Class =  \
      ::segplug::Registry::instance().add(name, [] { return std::unique_ptr<::segplug::Segmenter>(new Class()); })

/// Anchors by size of the feature map.
class AnchorCache {
 public:
  const at::Tensor& grid(int64_t height, int64_t width, const at::Device& device);
  const at::Tensor& grid_per_device(int64_t height, int64_t width, const at::Device& device);

 private:
  std::map<std::pair<int64_t, int64_t>, at::Tensor> grids_;
  std::map<std::tuple<int64_t, int64_t, std::string>, at::Tensor> per_device_;
};

struct HeadImpl : torch::nn::Module {
  HeadImpl(int64_t classes, int64_t prototypes);
  std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(const at::Tensor& image);

  torch::nn::Conv2d stem{nullptr}, scores{nullptr}, boxes{nullptr}, coefficients{nullptr};
  at::Tensor stride;
};
TORCH_MODULE(Head);

// postprocess.cpp
at::Tensor decode_boxes(const at::Tensor& deltas, const at::Tensor& grid);
at::Tensor iou(const at::Tensor& a, const at::Tensor& b);
at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double overlap);
at::Tensor nms_greedy(const at::Tensor& boxes, const at::Tensor& scores, double overlap);
at::Tensor assemble_masks(const at::Tensor& prototypes, const at::Tensor& coefficients);
at::Tensor crop_masks(at::Tensor masks, const at::Tensor& boxes, const at::Device& device = at::kCPU);
std::vector<uint8_t> run_length(const at::Tensor& mask);
at::Tensor to_tensor(const Frame& frame, const at::Device& device);

/// Remembers instances between frames.
class Tracker {
 public:
  explicit Tracker(int64_t dim) : gallery_(at::zeros({0, dim})), ids_(at::zeros({0}, at::kLong)) {}
  at::Tensor match(const at::Tensor& embeddings) const;
  void add(const at::Tensor& embeddings);
  void add_raw(const at::Tensor& embeddings);
  at::Tensor ids_of(const at::Tensor& embeddings) const;
  void move(const at::Device& device) { gallery_ = gallery_.to(device); }

 private:
  at::Tensor gallery_, ids_;
};

/// Models by name, each loaded once.
class Zoo {
 public:
  explicit Zoo(std::string folder, at::Device device) : folder_(std::move(folder)), device_(device) {}
  torch::jit::Module& script(const std::string& name);
  at::Tensor run(const std::string& name, const at::Tensor& image);
  at::Tensor palette(const std::string& name);
  at::Tensor colorize(const std::string& name, const at::Tensor& labels);
  at::Tensor blend(const std::string& name, const at::Tensor& image);

 private:
  std::string folder_;
  at::Device device_;
  std::mutex mutex_;
  std::unordered_map<std::string, torch::jit::Module> models_;
  std::unordered_map<std::string, at::Tensor> palettes_;
};

} // namespace segplug
