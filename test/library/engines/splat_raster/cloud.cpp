#include "splat.h"

#include <cmath>
#include <cstring>

namespace splat {

GaussianCloud::GaussianCloud(int64_t count, torch::Device device) {
  const auto options = torch::device(device).dtype(torch::kFloat);
  means_ = torch::rand({count, 3}, options) * 2 - 1;
  log_scales_ = torch::full({count, 3}, -4., options);
  quats_ = torch::zeros({count, 4}, options);
  quats_.select(1, 0).fill_(1);
  opacity_logit_ = torch::full({count}, std::log(0.1 / 0.9), options);
  sh_ = torch::zeros({count, 4, 3}, options);
  grad_accum_ = torch::zeros({count}, options);
  view_count_ = torch::zeros({count}, options);
}

void GaussianCloud::to(torch::Device device) {
  for (auto* t : {&means_, &log_scales_, &quats_, &opacity_logit_, &sh_, &grad_accum_})
    *t = t->to(device);
}

void GaussianCloud::add_view_stats(const torch::Tensor& grads, const torch::Tensor& visible) {
  const auto seen = visible.to(means_.device(), torch::kFloat);
  grad_accum_ += grads.to(means_.device()).norm(2, 1) * seen;
  view_count_ += seen; // [[device-mixed-op]]
}

torch::Tensor GaussianCloud::render(const torch::Tensor& view, const Pinhole& cam) const {
  const auto [xys, depths] = project(means_, view, cam);
  return rasterize(xys, sh_.select(1, 0).contiguous(), opacity(), cam, torch::zeros({3}));
}

void GaussianCloud::keep_only(const std::vector<int64_t>& rows) {
  const auto keep = torch::tensor(rows, torch::kLong);
  for (auto* t : {&means_, &log_scales_, &quats_, &opacity_logit_, &sh_, &grad_accum_, &view_count_})
    *t = t->index({keep});
}

void GaussianCloud::prune(float min_opacity) {
  const auto visible = opacity().cpu();
  const auto values = visible.accessor<float, 1>();
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < visible.size(0); ++i)
    if (values[i] >= min_opacity)
      rows.push_back(i);
  keep_only(rows);
}

void GaussianCloud::split(float threshold) {
  const auto large = (grad_accum_ / view_count_.clamp_min(1)) > threshold;
  const auto centres = means_.index({large});
  const auto spread = log_scales_.index({large}).exp();
  const auto offsets = torch::randn({centres.size(0), 3}) * spread; // [[device-mixed-op]]
  means_ = torch::cat({means_, centres + offsets});
}

std::vector<char> GaussianCloud::serialize() const {
  std::vector<char> bytes(means_.numel() * sizeof(float));
  const auto* points = means_.detach().cpu().data_ptr<float>(); // [[device-dangling-data]]
  std::memcpy(bytes.data(), points, bytes.size());
  return bytes;
}

void GaussianCloud::restore(const std::vector<char>& bytes, int64_t count) {
  const auto host = torch::from_blob(const_cast<char*>(bytes.data()), {count, 3}, torch::kFloat);
  means_ = host.to(means_.device(), torch::kFloat, false, true);
}

std::vector<float> GaussianCloud::bounds() const {
  std::vector<float> box(6);
  std::memcpy(box.data(), std::get<0>(means_.min(0)).cpu().data_ptr<float>(), 3 * sizeof(float));
  std::memcpy(box.data() + 3, std::get<0>(means_.max(0)).cpu().data_ptr<float>(), 3 * sizeof(float));
  return box;
}

float GaussianCloud::depth_at(const torch::Tensor& view, const Pinhole& cam, int64_t id) const {
  const auto depths = std::get<1>(project(means_, view, cam));
  return depths.accessor<float, 1>()[id]; // [[device-host-access]]
}

torch::Tensor look_at(const std::vector<float>& eye, const std::vector<float>& target) {
  const auto e = torch::tensor(eye), f = torch::nn::functional::normalize(torch::tensor(target) - e,
      torch::nn::functional::NormalizeFuncOptions().dim(0));
  auto view = torch::eye(4);
  view.index_put_({2, torch::indexing::Slice(0, 3)}, f);
  view.index_put_({2, 3}, -f.dot(e));
  return view;
}

float psnr(const torch::Tensor& rendered, const torch::Tensor& truth) {
  const auto mse = (rendered - truth.to(rendered.device())).pow(2).mean();
  return -10 * std::log10(mse.item<float>());
}

} // namespace splat

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace splat;
static torch::Tensor view() { return look_at({0, 0, -3}, {0, 0, 0}); }
static GaussianCloud cloud(int64_t n = 200) { return GaussianCloud(n, dtl::dev(1)); }
static void cov_bad() { covariance_2d(dtl::gpu({5, 3}), dtl::gpu({5, 4})); }
static void ranges_bad() { tile_ranges(dtl::longs({9}), {}); }
static void shade_bad() { shade(dtl::gpu({5, 3}), dtl::gpu({5, 4, 3})); }
static void background_bad() { rasterize(dtl::gpu({5, 2}), dtl::gpu({5, 3}), dtl::gpu({5}), {}, {}); }
static void features_bad() { rasterize_features(dtl::gpu({5, 2}), dtl::gpu({5, 32}), {}); }
static void depth_bad() {
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(false, 0));
  rasterize_depth(dtl::gpu({5, 2}), dtl::gpu({5}), {});
}
static void stats_bad() {
  GaussianCloud c(20, torch::kCPU);
  c.to(dtl::dev(1));
  c.add_view_stats(dtl::gpu({20, 2}), torch::ones({20}, torch::kBool));
}
static void split_bad() { cloud().split(-1); }
static void serialize_bad() {
  auto c = cloud();
  auto b = c.serialize();
  auto box = c.bounds();
  auto* p = reinterpret_cast<const float*>(b.data());
  for (int i = 0; i < 600; ++i)
    dtl::require(p[i] >= box[i % 3] && p[i] <= box[3 + i % 3] && p[i] != p[(i + 1) % 600], "points");
}
static void depth_at_bad() { cloud().depth_at(view(), {}, 3); }
static void render_ok() { auto c = cloud(); c.render(view(), {}); psnr(c.render(view(), {}), torch::rand({64, 64, 3})); }
static void counts_ok() { intersect_counts(dtl::gpu({5, 2}), dtl::ints({5})); }
static void composite_ok() {
  auto c = dtl::gpu({6, 3}).requires_grad_();
  alpha_composite(c, dtl::gpu({6, 3})).sum().backward();
}
static void sort_ok() { sort_by_depth(dtl::gpu({5}), torch::arange(5)); }
static void prune_ok() { auto c = cloud(); c.keep_only({1, 3, 5}); c.prune(0.05f); dtl::require(c.size() == 3, "rows"); }
static void restore_ok() { auto c = cloud(4); c.restore(std::vector<char>(48), 4); dtl::require(c.bounds()[0] == 0, "zeros"); }
static void background_ok() { rasterize(dtl::gpu({5, 2}), dtl::gpu({5, 3}), dtl::gpu({5}), {}, torch::ones({3})); }
static void stats_ok() { cloud(20).add_view_stats(dtl::gpu({20, 2}), torch::ones({20}, torch::kBool)); }
DT_MAIN(cov_bad, ranges_bad, shade_bad, background_bad, features_bad, depth_bad, stats_bad, split_bad, serialize_bad,
        depth_at_bad, render_ok, counts_ok, composite_ok, sort_ok, prune_ok, restore_ok, background_ok, stats_ok)
#endif
