#include "plugin.h"

#include <cstring>

namespace segplug {

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

bool Registry::add(const std::string& name, Factory factory) {
  return factories_.emplace(name, std::move(factory)).second;
}

std::unique_ptr<Segmenter> Registry::make(const std::string& name) const {
  const auto found = factories_.find(name);
  TORCH_CHECK(found != factories_.end(), "no segmenter is called ", name);
  return found->second();
}

HeadImpl::HeadImpl(int64_t classes, int64_t prototypes) {
  auto conv = [](int64_t in, int64_t out) { return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)); };
  stem = register_module("stem", conv(3, prototypes));
  scores = register_module("scores", conv(prototypes, classes));
  boxes = register_module("boxes", conv(prototypes, 4));
  coefficients = register_module("coefficients", conv(prototypes, prototypes));
  stride = at::full({}, 1.f); // 0-dim: goes with any device
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> HeadImpl::forward(const at::Tensor& image) {
  const auto x = stem(image).relu();
  auto rows = [](const at::Tensor& t) { return t.squeeze(0).flatten(1).t(); };
  return {rows(scores(x)).softmax(1), rows(boxes(x)) * stride, rows(coefficients(x))};
}

namespace {

class PrototypeSegmenter : public Segmenter {
 public:
  void configure(const Settings& settings) override {
    settings_ = settings;
    device_ = at::Device(settings.device);
    head_ = Head(settings.classes, settings.prototypes);
    head_->to(device_);
    head_->eval();
    if (settings.class_weights)
      weights_ = at::tensor(*settings.class_weights);
  }

  std::vector<Instance> process(const Frame& frame) override {
    at::NoGradGuard no_grad;
    const auto image = to_tensor(frame, device_);
    auto [scores, deltas, coefficients] = head_->forward(image);
    if (weights_.defined())
      scores = scores * weights_.to(scores.device());
    const auto boxes = decode_boxes(deltas, anchors_.grid_per_device(frame.height, frame.width, device_));
    const auto [best, labels] = scores.max(1);
    const auto kept = nms(boxes, best, settings_.overlap);
    const auto chosen = boxes.index_select(0, kept);
    const auto masks = crop_masks(assemble_masks(head_->stem(image).squeeze(0), coefficients.index_select(0, kept)), chosen, device_);
    std::vector<Instance> out(static_cast<size_t>(kept.numel()));
    const auto host = chosen.cpu().contiguous(), confidence = best.index({kept}).cpu();
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(out[i].box, host.data_ptr<float>() + 4 * i, sizeof out[i].box);
      out[i].score = confidence.data_ptr<float>()[i];
      out[i].label = labels[kept[static_cast<int64_t>(i)]].item<int64_t>();
      out[i].mask = run_length(masks[static_cast<int64_t>(i)]);
    }
    return out;
  }

 private:
  Settings settings_;
  at::Device device_{at::kCPU};
  Head head_{nullptr};
  AnchorCache anchors_;
  at::Tensor weights_;
};

// Labels for each pixel; no instances.
class SemanticSegmenter : public Segmenter {
 public:
  void configure(const Settings& settings) override {
    settings_ = settings;
    head_ = Head(settings.classes, settings.prototypes);
    head_->to(at::Device(settings.device));
    prior_ = at::ones({settings.classes}) / settings.classes;
  }

  std::vector<Instance> process(const Frame& frame) override {
    at::NoGradGuard no_grad;
    const auto scores = std::get<0>(head_->forward(to_tensor(frame, at::Device(settings_.device))));
    const auto labels = (scores / prior_).argmax(1).to(at::kByte); // [[device-mixed-op]]
    Instance all{};
    const auto host = labels.cpu();
    all.mask.assign(host.data_ptr<uint8_t>(), host.data_ptr<uint8_t>() + host.numel());
    return {all};
  }

 private:
  Settings settings_;
  Head head_{nullptr};
  at::Tensor prior_;
};

SEGPLUG_REGISTER("prototype", PrototypeSegmenter);
SEGPLUG_REGISTER("semantic", SemanticSegmenter);

} // namespace

torch::jit::Module& Zoo::script(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = models_.find(name);
  if (found != models_.end())
    return found->second;
  auto model = torch::jit::load(folder_ + "/" + name + ".pt", device_);
  model.eval();
  return models_.emplace(name, std::move(model)).first->second;
}

at::Tensor Zoo::run(const std::string& name, const at::Tensor& image) {
  return script(name).forward({image.to(device_)}).toTensor();
}

at::Tensor Zoo::palette(const std::string& name) {
  auto& colors = palettes_[name];
  if (!colors.defined())
    torch::load(colors, folder_ + "/" + name + ".palette");
  return colors;
}

at::Tensor Zoo::colorize(const std::string& name, const at::Tensor& labels) {
  return palette(name).index_select(0, labels.flatten().to(device_)); // [[device-load-placement]]
}

at::Tensor Zoo::blend(const std::string& name, const at::Tensor& image) {
  const auto pixels = image.to(device_);
  const auto tint = palette(name).to(pixels.device()).mean(0);
  return pixels * 0.5 + tint.view({-1, 1, 1}) * 0.5;
}

// Two cameras, each on a GPU of its own, share the anchors.
std::vector<at::Tensor> decode_all(const std::vector<at::Tensor>& deltas, int64_t height, int64_t width) {
  AnchorCache anchors;
  std::vector<at::Tensor> out;
  for (size_t camera = 0; camera < deltas.size(); ++camera) {
    const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(camera));
    const auto there = deltas[camera].to(device);
    out.push_back(decode_boxes(there, anchors.grid(height, width, device)));
  }
  return out;
}

// A crop of what one GPU has assembled.
at::Tensor crop_on(const at::Tensor& masks, const at::Tensor& boxes, int gpu) {
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
  return crop_masks(masks.to(device), boxes.to(device));
}

// Follows the instances of a video on a GPU.
at::Tensor follow(const std::vector<at::Tensor>& frames) {
  Tracker tracker(frames.front().size(1));
  tracker.move(at::kCUDA);
  for (const auto& embeddings : frames)
    tracker.add(embeddings);
  return tracker.ids_of(frames.back());
}

at::Tensor similarities(const std::vector<at::Tensor>& frames) {
  Tracker tracker(frames.front().size(1));
  tracker.move(at::kCUDA);
  for (const auto& embeddings : frames)
    tracker.add(embeddings);
  return tracker.match(frames.back());
}

float coverage(const at::Tensor& boxes, const at::Tensor& scores) {
  const auto there = boxes.cuda();
  const auto kept = nms_greedy(there, scores.cuda(), 0.5);
  const auto area = there.index({kept}).prod(1).contiguous();
  const float* values = area.data_ptr<float>();
  float total = 0;
  for (int64_t i = 0; i < area.numel(); ++i)
    total += values[i]; // [[device-host-access]]
  return total;
}

float coverage_host(const at::Tensor& boxes, const at::Tensor& scores) {
  const auto kept = nms_greedy(boxes.cuda(), scores.cuda(), 0.5);
  const auto area = boxes.cpu().index({kept}).prod(1).contiguous();
  const auto values = area.accessor<float, 1>();
  float total = 0;
  for (int64_t i = 0; i < values.size(0); ++i)
    total += values[i];
  return total;
}

} // namespace segplug

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace segplug;
static std::vector<uint8_t> pixels(5 * 4 * 3, 100);
static Frame frame() { return {pixels.data(), 5, 4}; }
static void process(const char* name, const char* device, bool weights = false) {
  auto s = Registry::instance().make(name);
  Settings settings;
  settings.device = device;
  if (weights) settings.class_weights = {1, 2, 3, 4};
  s->configure(settings);
  s->process(frame());
}
static at::Tensor boxes() { return torch::tensor({0.f, 0.f, 2.f, 2.f, 1.f, 1.f, 3.f, 3.f}).view({2, 4}); }
static void palette() { torch::save(torch::rand({4, 3}), "/tmp/dt_plugins_a.palette"); }
static void decode_bad() { decode_all({torch::rand({20, 4}), torch::rand({20, 4})}, 4, 5); }
static void crop_bad() { crop_on(torch::rand({2, 4, 5}), boxes(), 1); }
static void follow_bad() { follow({torch::rand({2, 3}), torch::rand({2, 3})}); }
static void semantic_bad() { process("semantic", "cuda:1"); }
static void colorize_bad() { palette(); Zoo z("/tmp", dtl::dev(1)); z.colorize("dt_plugins_a", torch::zeros({4}, torch::kLong)); }
static void coverage_bad() { coverage(boxes(), torch::rand({2})); }
static void coverage_ok() { coverage_host(boxes(), torch::rand({2})); }
static void prototype_ok() { process("prototype", "cuda:1", true); process("prototype", "cpu", true); process("semantic", "cpu"); }
static void zoo_ok() { palette(); Zoo z("/tmp", dtl::dev(1)); z.blend("dt_plugins_a", torch::rand({3, 4, 4})); }
static void similar_ok() { similarities({torch::rand({2, 3}), torch::rand({2, 3})}); Tracker t(3); t.add_raw(dtl::gpu({2, 3})); t.add_raw(dtl::gpu({2, 3})); t.match(torch::rand({2, 3})); }
static void script_ok() {
  torch::jit::Module m("m");
  m.define("def forward(self, x):\n  return x + 1\n");
  m.save("/tmp/dt_plugins_m.pt");
  palette();
  Zoo z("/tmp", dtl::dev(1));
  z.run("dt_plugins_m", torch::rand({3}));
  z.run("dt_plugins_m", torch::rand({3}));
}
DT_MAIN(decode_bad, crop_bad, follow_bad, semantic_bad, colorize_bad, coverage_bad, coverage_ok, prototype_ok, zoo_ok, similar_ok, script_ok)
#endif
