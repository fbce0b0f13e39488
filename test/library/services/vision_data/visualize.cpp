#include "loader.h"
#include "metrics.h"

#include <algorithm>

namespace vision {

namespace {

const torch::Tensor& palette() {
  static const torch::Tensor colours = torch::tensor({0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0}, torch::kByte).view({4, 3});
  return colours;
}

torch::Tensor bytes(const torch::Tensor& image) {
  return image.detach().mul(255).clamp(0, 255).to(torch::kByte).permute({1, 2, 0}).contiguous();
}

} // namespace

std::vector<uint8_t> to_rgb(const torch::Tensor& image) {
  const auto host = bytes(image).cpu();
  return {host.data_ptr<uint8_t>(), host.data_ptr<uint8_t>() + host.numel()};
}

std::vector<uint8_t> mosaic(const torch::Tensor& images, int64_t columns) {
  const auto on_gpu = images.to(torch::kCUDA);
  const int64_t rows = (on_gpu.size(0) + columns - 1) / columns, h = on_gpu.size(2), w = on_gpu.size(3);
  std::vector<uint8_t> canvas(rows * h * columns * w * 3);
  for (int64_t i = 0; i < on_gpu.size(0); ++i) {
    const auto tile = bytes(on_gpu[i]);
    const uint8_t* from = tile.data_ptr<uint8_t>();
    uint8_t* to = canvas.data() + ((i / columns) * h * columns * w + (i % columns) * w) * 3;
    for (int64_t y = 0; y < h; ++y)
      std::copy_n(from + y * w * 3, w * 3, to + y * columns * w * 3); // [[device-host-access]]
  }
  return canvas;
}

std::vector<uint8_t> label_colours(const torch::Tensor& labels) {
  const auto colours = palette().index({labels.cpu().remainder(4)}).contiguous();
  const uint8_t* rgb = colours.data_ptr<uint8_t>();
  return {rgb, rgb + colours.numel()};
}

torch::Tensor blend(const torch::Tensor& image, const torch::Tensor& labels, double opacity) {
  const auto colours = palette().to(image.device()).index({labels.to(image.device()).remainder(4)});
  return (1 - opacity) * image + opacity * colours.permute({2, 0, 1}).to(image.scalar_type()) / 255;
}

std::string ascii_heatmap(const torch::Tensor& logits) {
  static const char ramp[] = " .:-=+*#%@";
  const int64_t h = logits.size(0), w = logits.size(1);
  const float* heat = torch::sigmoid(logits).to(torch::kCPU).data_ptr<float>(); // [[device-dangling-data]]
  std::string out;
  out.reserve(h * (w + 1));
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x)
      out += ramp[std::clamp(static_cast<int>(heat[y * w + x] * 10), 0, 9)];
    out += '\n';
  }
  return out;
}

std::vector<float> curve(const torch::Tensor& scores, int64_t bins) {
  const auto histogram = scores.detach().cpu().histc(bins, 0, 1);
  std::vector<float> out(bins);
  std::memcpy(out.data(), histogram.data_ptr<float>(), bins * sizeof(float));
  return out;
}

} // namespace vision

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace vision;
static Batch batch() {
  std::vector<Sample> s(2);
  for (auto &x : s)
    x = {torch::rand({3, 8, 8}), torch::tensor({1.f, 1.f, 5.f, 6.f}).view({1, 4}), 1};
  return collate(s);
}
static void grayscale_bad() { BatchAugment().apply("grayscale", torch::rand({2, 3, 4, 4})); }
static void upload_discarded_bad() { auto b = batch(); Prefetcher::upload(b); dtl::onDevice(b.labels, 0, "labels"); }
static void recycle_bad() { Prefetcher::recycle(batch()); }
static void boxes_bad() { boxes_of_images(batch()); }
static void iou_bad() { MeanIoU(3).update(dtl::gpu({2, 3, 4, 4}), dtl::longs({2, 4, 4})); }
static void whitening_bad() { FeatureStatistics f(4); f.update(dtl::gpu({6, 4})); f.whitening(); }
static void mosaic_bad() { mosaic(torch::rand({3, 3, 4, 4}), 2); }
static void heatmap_bad() {
  auto text = ascii_heatmap(dtl::gpu({16, 16}) * 0.01);
  for (char c : text)
    dtl::require(c == '\n' || c == '+', "heat");
}
static void augment_ok() {
  BatchAugment a;
  a.apply_all({"flip", "brightness", "normalise"}, dtl::gpu({2, 3, 4, 4}));
  BatchAugment::mixup(dtl::gpu({2, 3, 4, 4}), dtl::gpu({2, 5}));
}
static void prefetch_ok() {
  int left = 3;
  Prefetcher p([&](Batch &b) { b = batch(); return left-- > 0; }, 2, true);
  Batch b;
  while (p.next(b))
    dtl::onDevice(b.images, 0, "images");
  crops(Prefetcher::upload_pinned(batch()));
}
static void decode_ok() { decode(std::vector<uint8_t>(48, 7), 4, 4); }
static void metrics_ok() {
  TopK t(2);
  t.update(dtl::gpu({4, 5}), torch::zeros({4}, torch::kLong));
  t.value();
  MeanLoss l;
  l.update(dtl::gpu({4, 5}), dtl::longs({4}));
  l.update(dtl::gpu({4, 5}), dtl::longs({4}));
  l.value();
  l.reset();
}
static void statistics_ok() { FeatureStatistics a(4), b(4); a.update(dtl::gpu({6, 4})); b.update(torch::rand({5, 4})); a.distance(b); }
static void draw_ok() {
  to_rgb(dtl::gpu({3, 4, 4}));
  label_colours(dtl::longs({4, 4}));
  blend(dtl::gpu({3, 4, 4}), torch::zeros({4, 4}, torch::kLong), 0.5);
  curve(dtl::gpu({9}), 4);
}
DT_MAIN(grayscale_bad, upload_discarded_bad, recycle_bad, boxes_bad, iou_bad, whitening_bad, mosaic_bad, heatmap_bad,
        augment_ok, prefetch_ok, decode_ok, metrics_ok, statistics_ok, draw_ok)
#endif
