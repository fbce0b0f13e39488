#include "detector.h"

namespace F = torch::nn::functional;

namespace detect {

torch::Tensor AnchorGrid::base(size_t index) const {
  std::vector<torch::Tensor> rows;
  for (const float scale : scales_) {
    const float half = 0.5f * scale * static_cast<float>(strides_.at(index));
    rows.push_back(torch::tensor({-half, -half, half, half}));
  }
  return torch::stack(rows).to(device_);
}

torch::Tensor AnchorGrid::level(size_t index, int64_t height, int64_t width) {
  const auto key = std::make_tuple(index, height, width);
  const auto found = cache_.find(key);
  if (found != cache_.end())
    return found->second;
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device_);
  const auto stride = static_cast<float>(strides_.at(index));
  const auto y = (torch::arange(height, options) + 0.5) * stride, x = (torch::arange(width, options) + 0.5) * stride;
  const auto grid = torch::meshgrid({y, x}, "ij");
  const auto centers = torch::stack({grid[1], grid[0], grid[1], grid[0]}, -1).reshape({-1, 1, 4});
  return cache_[key] = (centers + base(index).unsqueeze(0)).reshape({-1, 4});
}

torch::Tensor AnchorGrid::shifted(size_t index, int64_t height, int64_t width) const {
  const auto stride = strides_.at(index);
  const auto y = torch::arange(0, height * stride, stride, torch::kFloat32);
  const auto x = torch::arange(0, width * stride, stride, torch::kFloat32);
  const auto grid = torch::meshgrid({y, x}, "ij");
  const auto shifts = torch::stack({grid[1], grid[0], grid[1], grid[0]}, -1).reshape({-1, 1, 4});
  return (shifts + base(index).unsqueeze(0)).reshape({-1, 4}); // [[device-mixed-op]]
}

torch::Tensor AnchorGrid::all(const std::vector<std::pair<int64_t, int64_t>> &sizes) {
  TORCH_CHECK(sizes.size() == strides_.size(), "a size per level is needed");
  std::vector<torch::Tensor> levels;
  for (size_t i = 0; i < sizes.size(); ++i)
    levels.push_back(level(i, sizes[i].first, sizes[i].second));
  return torch::cat(levels);
}

Detector::Detector(DetectorOptions options)
    : options_(options), anchors_(options.strides, options.scales, options.device) {
  backbone_ = torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(8).padding(1));
  classHead_ = torch::nn::Linear(8, options_.classes);
  boxHead_ = torch::nn::Linear(8, 4);
  backbone_->to(options_.device);
  classHead_->to(options_.device);
  boxHead_->to(options_.device);
  pixelMean_ = torch::tensor({0.485f, 0.456f, 0.406f}).view({1, 3, 1, 1});
  pixelScale_ = torch::tensor({0.229f, 0.224f, 0.225f}).view({1, 3, 1, 1});
  variances_ = torch::tensor({0.1f, 0.1f, 0.2f, 0.2f});
  classPrior_ = torch::full({options_.classes}, 2.0f);
}

// The image is normalised where it was decoded, which is cheaper to upload.
torch::Tensor Detector::preprocess(const torch::Tensor &image) const {
  TORCH_CHECK(image.dim() == 3 && image.size(0) == 3, "expected a planar RGB image");
  auto pixels = image.to(torch::kCPU, torch::kFloat32).div(255).unsqueeze(0);
  pixels = (pixels - pixelMean_) / pixelScale_;
  return pixels.to(options_.device);
}

torch::Tensor Detector::decode(const torch::Tensor &deltas, const torch::Tensor &anchors) const {
  const auto scaled = deltas.to(options_.device) * variances_; // [[device-mixed-op]]
  const auto centers = toCenters(anchors);
  const auto xy = centers.slice(1, 0, 2) + scaled.slice(1, 0, 2) * centers.slice(1, 2, 4);
  const auto wh = centers.slice(1, 2, 4) * scaled.slice(1, 2, 4).clamp_max(4.0).exp();
  return fromCenters(torch::cat({xy, wh}, 1));
}

torch::Tensor Detector::encode(const torch::Tensor &boxes, const torch::Tensor &anchors) const {
  const auto target = toCenters(boxes), source = toCenters(anchors);
  const auto xy = (target.slice(1, 0, 2) - source.slice(1, 0, 2)) / source.slice(1, 2, 4);
  const auto wh = torch::log(target.slice(1, 2, 4) / source.slice(1, 2, 4));
  return torch::cat({xy, wh}, 1) / variances_.to(boxes.device());
}

std::vector<Detection> Detector::detect(const torch::Tensor &image) {
  torch::NoGradGuard noGrad;
  const auto map = features(image).flatten(2).transpose(1, 2).squeeze(0);
  const auto scores = torch::sigmoid(classHead_->forward(map)), deltas = boxHead_->forward(map);
  const auto boxes = clipToImage(deltas * static_cast<double>(options_.strides[0]), image.size(1), image.size(2));
  const auto [best, labels] = scores.max(1);
  const auto keep = suppressPerClass(boxes, best, labels, options_.nmsThreshold);
  const auto kept = boxes.index({keep}).cpu();
  const auto keptScores = best.index({keep}).cpu(), keptLabels = labels.index({keep}).cpu();
  std::vector<Detection> detections;
  for (int64_t i = 0; i < kept.size(0); ++i) {
    Detection detection{};
    std::copy_n(kept[i].data_ptr<float>(), 4, detection.box);
    detection.score = keptScores[i].item<float>();
    detection.label = keptLabels[i].item<int64_t>();
    if (detection.score >= options_.scoreThreshold)
      detections.push_back(detection);
  }
  return detections;
}

std::vector<Detection> Detector::collect(const torch::Tensor &boxes, const torch::Tensor &scores) const {
  const auto onDevice = boxes.to(options_.device);
  const auto [best, labels] = scores.to(options_.device).max(1);
  const auto keep = best.gt(options_.scoreThreshold).nonzero().squeeze(1);
  const auto kept = onDevice.index_select(0, keep).contiguous();
  const auto keptScores = best.index_select(0, keep).cpu(), keptLabels = labels.index_select(0, keep).cpu();
  const auto box = kept.accessor<float, 2>();
  const auto score = keptScores.accessor<float, 1>();
  const auto label = keptLabels.accessor<int64_t, 1>();
  std::vector<Detection> detections;
  for (int64_t i = 0; i < kept.size(0); ++i)
    detections.push_back({{box[i][0], box[i][1], box[i][2], box[i][3]}, score[i], label[i]}); // [[device-host-access]]
  return detections;
}

torch::Tensor Detector::assign(const torch::Tensor &anchors, const Targets &targets) const {
  auto assigned = torch::zeros({anchors.size(0)}, anchors.options().dtype(torch::kLong));
  if (targets.boxes.numel() == 0)
    return assigned;
  const auto iou = pairwiseIou(anchors, targets.boxes.to(anchors.device()));
  const auto [best, index] = iou.max(1);
  const auto labels = targets.labels.to(anchors.device()).index_select(0, index);
  return torch::where(best > 0.5, labels, assigned);
}

torch::Tensor Detector::classLoss(const torch::Tensor &features, const torch::Tensor &assigned) {
  const auto logits = classHead_->forward(features.to(options_.device));
  const auto target = torch::one_hot(assigned.to(options_.device), options_.classes).to(torch::kFloat32);
  const auto options = F::BinaryCrossEntropyWithLogitsFuncOptions().pos_weight(classPrior_);
  return F::binary_cross_entropy_with_logits(logits, target, options); // [[device-loss-input]]
}

torch::Tensor Detector::boxLoss(const torch::Tensor &features, const Targets &targets) {
  auto expected = targets.boxes.clone();
  expected.to(options_.device); // [[device-discarded-move]]
  const auto predicted = boxHead_->forward(features.to(options_.device));
  return torch::smooth_l1_loss(predicted, expected);
}

torch::Tensor Detector::objectness(const torch::Tensor &image) {
  const auto map = features(image);
  auto heat = torch::empty({map.size(2), map.size(3)});
  heat.copy_(map.squeeze(0).abs().mean(0));
  return heat / (heat.max() + torch::tensor(1e-6f));
}

std::vector<int64_t> Detector::histogram(const torch::Tensor &labels) const {
  const auto counts = torch::bincount(labels.to(options_.device), {}, options_.classes).cpu();
  const int64_t *first = counts.data_ptr<int64_t>();
  return {first, first + counts.numel()};
}

} // namespace detect

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace detect;

const torch::Device gpu(torch::kCUDA, 2);
Detector onGpu() {
  DetectorOptions options;
  options.device = gpu;
  return Detector(options);
}
torch::Tensor someBoxes(int64_t n, torch::Device device) {
  auto corner = torch::rand({n, 2}, device) * 20;
  return torch::cat({corner, corner + 10}, 1);
}
Targets targets() { return {someBoxes(6, torch::kCPU), torch::randint(3, {6}, torch::kLong)}; }

void iou_ok() { pairwiseIou(someBoxes(3, gpu), someBoxes(4, gpu)); }
void clip_ok() { clipToImage(someBoxes(3, gpu), 20, 30); }
void scale_ok() { scaleToOriginal(someBoxes(3, gpu), 2, 3); }
void suppress_ok() { suppress(someBoxes(5, gpu), torch::rand({5}, gpu), 0.5f); }
void suppress_per_class_ok() {
  suppressPerClass(someBoxes(5, gpu), torch::rand({5}, gpu), torch::randint(3, {5}, torch::TensorOptions(torch::kLong).device(gpu)), 0.5f);
}
void soft_suppress_ok() { softSuppress(someBoxes(5, gpu), torch::rand({5}, gpu), 0.5f); }
void level_ok() { onGpu().anchors().level(0, 3, 4); }
void shifted_bad() { onGpu().anchors().shifted(0, 3, 4); }
void all_anchors_ok() { onGpu().anchors().all({{3, 4}, {2, 2}}); }
void preprocess_ok() { onGpu().preprocess(torch::rand({3, 16, 16})); }
void decode_bad() { onGpu().decode(torch::rand({5, 4}, gpu), someBoxes(5, gpu)); }
void encode_ok() { onGpu().encode(someBoxes(5, gpu), someBoxes(5, gpu)); }
void detect_ok() { onGpu().detect(torch::rand({3, 16, 16}) * 255); }
void collect_bad() { onGpu().collect(someBoxes(5, gpu), torch::rand({5, 3}, gpu)); }
void assign_ok() { onGpu().assign(someBoxes(5, gpu), targets()); }
void class_loss_bad() { onGpu().classLoss(torch::rand({6, 8}, gpu), torch::randint(3, {6}, torch::kLong)); }
void box_loss_discarded_bad() { onGpu().boxLoss(torch::rand({6, 8}, gpu), targets()); }
void objectness_ok() { onGpu().objectness(torch::rand({3, 16, 16})); }
void histogram_ok() { onGpu().histogram(torch::randint(3, {9}, torch::kLong)); }

} // namespace

DT_MAIN(iou_ok, clip_ok, scale_ok, suppress_ok, suppress_per_class_ok, soft_suppress_ok, level_ok, shifted_bad,
        all_anchors_ok, preprocess_ok, decode_bad, encode_ok, detect_ok, collect_bad, assign_ok, class_loss_bad,
        box_loss_discarded_bad, objectness_ok, histogram_ok)
#endif
