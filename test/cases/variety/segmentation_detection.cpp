#include "../cases.h"
#include <torch/torch.h>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>
namespace F = torch::nn::functional;
using namespace torch::indexing;

// ---------------------------------------------------------------- detection
struct AnchorGenerator {
  explicit AnchorGenerator(torch::Device device) : device(device) {}
  torch::Tensor grid(int64_t h, int64_t w) const {
    auto y = torch::arange(h, torch::dtype(torch::kFloat).device(device));
    auto x = torch::arange(w, torch::dtype(torch::kFloat).device(device));
    auto yx = torch::meshgrid({y, x}, "ij");
    return torch::stack({yx[1], yx[0]}, -1).view({-1, 2});
  }
  torch::Tensor gridHost(int64_t h, int64_t w) const {
    auto y = torch::arange(h, torch::kFloat);
    auto x = torch::arange(w, torch::kFloat);
    auto yx = torch::meshgrid({y, x}, "ij");
    return torch::stack({yx[1], yx[0]}, -1).view({-1, 2});
  }
  torch::Device device;
};

torch::Tensor decode(const torch::Tensor& raw, const torch::Tensor& grid, double stride) {
  auto xy = (raw.slice(1, 0, 2).sigmoid() + grid) * stride; // [[device-mixed-op]]
  auto wh = raw.slice(1, 2, 4).exp() * stride;
  return torch::cat({xy, wh}, 1);
}

void yolo_decode_bad() {
  AnchorGenerator gen(torch::Device(torch::kCUDA, 0));
  auto raw = torch::randn({16, 4}, gen.device);
  auto boxes = decode(raw, gen.gridHost(4, 4), 8.0);
  (void)boxes;
}
void yolo_decode_ok() {
  AnchorGenerator gen(torch::Device(torch::kCUDA, 0));
  auto raw = torch::randn({16, 4}, gen.device);
  auto boxes = decode(raw, gen.grid(4, 4), 8.0);
  (void)boxes;
}

// nms on host indices: indexing a CUDA tensor with CPU indices is fine, the reverse is not
static std::vector<int64_t> greedyNms(const torch::Tensor& boxes, const torch::Tensor& scores, float thr) {
  auto order = std::get<1>(scores.sort(0, true)).to(torch::kCPU);
  auto host = boxes.to(torch::kCPU);
  auto acc = host.accessor<float, 2>();
  std::vector<int64_t> keep;
  for (int64_t i = 0; i < order.size(0); ++i) {
    const auto k = order[i].item<int64_t>();
    bool ok = true;
    for (auto j : keep) ok = ok && std::abs(acc[k][0] - acc[j][0]) > thr;
    if (ok) keep.push_back(k);
  }
  return keep;
}
void nms_index_ok() {
  auto boxes = torch::rand({8, 4}, torch::kCUDA), scores = torch::rand({8}, torch::kCUDA);
  auto keep = torch::tensor(greedyNms(boxes, scores, 0.01f), torch::kLong);
  auto kept = boxes.index({keep});
  auto top = kept.index({Slice(None, 2)});
  boxes.index_put_({keep, 0}, 1.0);
  (void)top;
}
void nms_index_bad() {
  auto boxes = torch::rand({8, 4}, torch::kCUDA), scores = torch::rand({8}, torch::kCUDA);
  auto keep = torch::tensor(greedyNms(boxes, scores, 0.01f), torch::kLong);
  auto kept = boxes.index_select(0, keep); // [[device-mixed-op]]
  (void)kept;
}
void mask_host_bad() {
  auto scores = torch::rand({8}, torch::kCUDA);
  auto boxesHost = torch::rand({8, 4}, torch::kCUDA).cpu();
  auto good = boxesHost.index({scores > 0.5}); // [[device-mixed-op]]
  (void)good;
}
void mask_host_ok() {
  auto scores = torch::rand({8}, torch::kCUDA);
  auto boxesHost = torch::rand({8, 4}, torch::kCUDA).cpu();
  auto good = boxesHost.index({(scores > 0.5).cpu()});
  (void)good;
}

// targets as a vector of maps
using Target = std::unordered_map<std::string, torch::Tensor>;
static std::vector<Target> makeTargets() {
  std::vector<Target> out;
  for (int i = 0; i < 2; ++i) {
    Target t;
    t["boxes"] = torch::rand({3, 4});
    t["labels"] = torch::randint(0, 5, {3}, torch::kLong);
    out.push_back(std::move(t));
  }
  return out;
}
struct HeadImpl : torch::nn::Module {
  HeadImpl() : cls(register_module("cls", torch::nn::Linear(8, 5))), reg(register_module("reg", torch::nn::Linear(8, 4))) {}
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& f) { return {cls(f), reg(f)}; }
  torch::nn::Linear cls, reg;
};
TORCH_MODULE(Head);
void det_targets_bad() {
  const torch::Device dev{torch::kCUDA, 1};
  Head head;
  head->to(dev);
  auto targets = makeTargets();
  for (auto t : targets)
    for (auto& kv : t) kv.second = kv.second.to(dev);
  for (auto& t : targets) {
    auto [logits, deltas] = head->forward(torch::randn({3, 8}, dev));
    auto l = F::smooth_l1_loss(deltas, t.at("boxes")); // [[device-loss-input]]
    l.backward();
  }
}
void det_targets_ok() {
  const torch::Device dev{torch::kCUDA, 1};
  Head head;
  head->to(dev);
  auto targets = makeTargets();
  for (auto& t : targets)
    for (auto& kv : t) kv.second = kv.second.to(dev);
  for (auto& t : targets) {
    auto [logits, deltas] = head->forward(torch::randn({3, 8}, dev));
    auto l = F::smooth_l1_loss(deltas, t.at("boxes")) + F::cross_entropy(logits, t.at("labels"));
    l.backward();
  }
}

// ---------------------------------------------------------------- segmentation
struct SegConfig {
  struct Loss {
    std::vector<float> weights{0.2f, 0.3f, 0.5f};
    bool weighted = true;
  } loss;
  int gpu = 0;
  torch::Device device() const { return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(gpu)); }
};
class SegTrainer {
 public:
  SegTrainer(const SegConfig& cfg, bool moveCriterion)
      : cfg_(cfg),
        net_(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 3, 1))),
        criterion_(torch::nn::CrossEntropyLossOptions().weight(torch::tensor(cfg.loss.weights)).ignore_index(255)) {
    net_->to(cfg_.device());
    if (moveCriterion) criterion_->to(cfg_.device());
  }
  torch::Tensor step(torch::Tensor image, torch::Tensor mask) {
    image = image.to(cfg_.device());
    mask = mask.to(cfg_.device(), torch::kLong);
    return criterion_(net_(image), mask); // [[device-loss-input]]
  }

 private:
  SegConfig cfg_;
  torch::nn::Conv2d net_;
  torch::nn::CrossEntropyLoss criterion_;
};
void seg_weights_bad() {
  SegTrainer t(SegConfig{}, false);
  t.step(torch::rand({1, 3, 4, 4}), torch::zeros({1, 4, 4})).backward();
}
void seg_weights_ok() {
  SegTrainer t(SegConfig{}, true);
  t.step(torch::rand({1, 3, 4, 4}), torch::zeros({1, 4, 4})).backward();
}

// dice with a one-hot built through scatter_
torch::Tensor oneHot(const torch::Tensor& mask, int64_t classes) {
  auto out = torch::zeros({mask.size(0), classes, mask.size(1), mask.size(2)});
  return out.scatter_(1, mask.unsqueeze(1), 1.0); // [[device-mixed-op]]
}
torch::Tensor oneHotLike(const torch::Tensor& mask, int64_t classes) {
  auto out = torch::zeros({mask.size(0), classes, mask.size(1), mask.size(2)}, mask.options().dtype(torch::kFloat));
  return out.scatter_(1, mask.unsqueeze(1), 1.0);
}
void dice_bad() {
  auto mask = torch::randint(0, 3, {1, 4, 4}, torch::kLong).to(torch::kCUDA);
  auto probs = torch::softmax(torch::randn({1, 3, 4, 4}, torch::kCUDA), 1);
  auto t = oneHot(mask, 3);
  (void)(2 * (probs * t.to(probs.device())).sum());
}
void dice_ok() {
  auto mask = torch::randint(0, 3, {1, 4, 4}, torch::kLong).to(torch::kCUDA);
  auto probs = torch::softmax(torch::randn({1, 3, 4, 4}, torch::kCUDA), 1);
  auto t = oneHotLike(mask, 3);
  (void)(2 * (probs * t).sum());
}

// confusion matrix for mIoU accumulates on host, predictions come from the GPU
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t n) : n_(n), mat_(torch::zeros({n, n}, torch::kLong)) {}
  void update(const torch::Tensor& pred, const torch::Tensor& gt) {
    auto idx = (gt * n_ + pred).view(-1);
    mat_ += torch::bincount(idx, {}, n_ * n_).view({n_, n_}); // [[device-mixed-op]]
  }
  void updateHost(const torch::Tensor& pred, const torch::Tensor& gt) {
    auto idx = (gt * n_ + pred).view(-1);
    mat_ += torch::bincount(idx, {}, n_ * n_).view({n_, n_}).cpu();
  }
  double iou() const { return mat_.diag().sum().item<double>(); }

 private:
  int64_t n_;
  torch::Tensor mat_;
};
void miou_bad() {
  ConfusionMatrix cm(3);
  auto out = torch::randn({1, 3, 4, 4}, torch::kCUDA);
  cm.update(out.argmax(1), torch::randint(3, {1, 4, 4}, torch::dtype(torch::kLong).device(torch::kCUDA)));
}
void miou_ok() {
  ConfusionMatrix cm(3);
  auto out = torch::randn({1, 3, 4, 4}, torch::kCUDA);
  cm.updateHost(out.argmax(1), torch::randint(3, {1, 4, 4}, torch::dtype(torch::kLong).device(torch::kCUDA)));
  cm.iou();
}

// skip connection kept in an optional
struct UnetImpl : torch::nn::Module {
  UnetImpl() {
    down = register_module("down", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)));
    up = register_module("up", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 2, 1)));
  }
  torch::Tensor forward(const torch::Tensor& x, const std::optional<torch::Tensor>& skip = std::nullopt) {
    auto d = down->forward(x);
    auto other = skip.has_value() ? *skip : d;
    return up->forward(torch::cat({d, other}, 1)); // [[device-mixed-op]]
  }
  torch::nn::Conv2d down{nullptr}, up{nullptr};
};
TORCH_MODULE(Unet);
void unet_skip_bad() {
  Unet net;
  net->to(torch::kCUDA);
  auto x = torch::rand({1, 3, 4, 4}, torch::kCUDA);
  net->forward(x, torch::zeros({1, 4, 4, 4}));
}
void unet_skip_ok() {
  Unet net;
  net->to(torch::kCUDA);
  auto x = torch::rand({1, 3, 4, 4}, torch::kCUDA);
  net->forward(x);
  net->forward(x, torch::zeros({1, 4, 4, 4}, x.device()));
}

DT_MAIN(yolo_decode_bad, yolo_decode_ok, nms_index_ok, nms_index_bad, mask_host_bad, mask_host_ok,
        det_targets_bad, det_targets_ok, seg_weights_bad, seg_weights_ok, dice_bad, dice_ok, miou_bad,
        miou_ok, unet_skip_bad, unet_skip_ok)
