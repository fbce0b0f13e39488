#include "gaussian_model.h"

#include <deque>
#include <mutex>

namespace gsmap {

static torch::Tensor skew(const torch::Tensor &w) {
  auto zero = torch::zeros({}, w.options());
  return torch::stack({zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero}).view({3, 3});
}

torch::Tensor expSO3(const torch::Tensor &omega) {
  auto theta = omega.norm().clamp_min(1e-8);
  auto k = skew(omega / theta);
  return torch::eye(3) + torch::sin(theta) * k + (1 - torch::cos(theta)) * k.matmul(k); // [[device-mixed-op]]
}

torch::Tensor expSE3(const torch::Tensor &twist) {
  auto pose = torch::eye(4, twist.options());
  auto theta = twist.slice(0, 3).norm().clamp_min(1e-8);
  auto k = skew(twist.slice(0, 3) / theta);
  auto rotation = torch::eye(3, twist.device()) + torch::sin(theta) * k + (1 - torch::cos(theta)) * k.matmul(k);
  return torch::cat({torch::cat({rotation, twist.slice(0, 0, 3).unsqueeze(1)}, 1), pose.slice(0, 3)}, 0);
}

static torch::Tensor gaussianWindow(int64_t size, const torch::Tensor &like) {
  auto x = torch::arange(size, like.options()) - static_cast<double>(size / 2);
  auto g = torch::exp(-x.pow(2) / (2 * 1.5 * 1.5));
  g = g / g.sum();
  return g.unsqueeze(1).matmul(g.unsqueeze(0)).expand({3, 1, size, size}).contiguous();
}

torch::Tensor ssim(const torch::Tensor &a, const torch::Tensor &b, int64_t window_size) {
  static std::unordered_map<int64_t, torch::Tensor> windows;
  auto &window = windows[window_size];
  if (!window.defined())
    window = gaussianWindow(window_size, a);
  auto blur = [&](const torch::Tensor &image) {
    return torch::conv2d(image.unsqueeze(0), window, {}, 1, window_size / 2, 1, 3); // [[device-mixed-op]]
  };
  auto mu1 = blur(a), mu2 = blur(b);
  auto s1 = blur(a * a) - mu1 * mu1, s2 = blur(b * b) - mu2 * mu2, s12 = blur(a * b) - mu1 * mu2;
  return (((2 * mu1 * mu2 + 1e-4) * (2 * s12 + 9e-4)) / ((mu1 * mu1 + mu2 * mu2 + 1e-4) * (s1 + s2 + 9e-4))).mean();
}

torch::Tensor gradientMagnitude(const torch::Tensor &image) {
  static std::mutex mutex;
  static std::unordered_map<std::string, torch::Tensor> kernels;
  torch::Tensor kernel;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto &slot = kernels[image.device().str()];
    if (!slot.defined())
      slot = torch::tensor({-1.f, 0.f, 1.f, -2.f, 0.f, 2.f, -1.f, 0.f, 1.f}).view({1, 1, 3, 3}).to(image.device());
    kernel = slot;
  }
  auto gray = image.mean(0, true).unsqueeze(0);
  auto dx = torch::conv2d(gray, kernel, {}, 1, 1);
  auto dy = torch::conv2d(gray, kernel.transpose(2, 3).contiguous(), {}, 1, 1);
  return (dx * dx + dy * dy).sqrt();
}

torch::Tensor psnr(const torch::Tensor &a, const torch::Tensor &b) {
  auto peak = torch::tensor(20.0);
  return peak * torch::log10(1.0 / torch::sqrt((a - b).pow(2).mean()));
}

struct RenderResult {
  torch::Tensor color, depth, viewspace;
};

/// Holds a window of keyframes in host memory and refines the model with a renderer that is plugged in.
class Mapper {
public:
  using Renderer = std::function<RenderResult(GaussianModel &, const torch::Tensor &pose)>;
  struct Options {
    size_t window = 8;
    double depth_weight = 0.2;
  };

  Mapper(ModelConfig config, Renderer renderer, Options options)
      : model_(config), renderer_(std::move(renderer)), options_(options), device_(config.device) {}

  GaussianModel &model() { return model_; }

  void addKeyframe(Keyframe frame) {
    frame.color = frame.color.to(torch::kCPU);
    frame.depth = frame.depth.to(torch::kCPU);
    frame.pose = frame.pose.to(torch::kCPU);
    std::lock_guard<std::mutex> lock(mutex_);
    if (frames_.size() == options_.window)
      frames_.pop_front();
    frames_.push_back(std::move(frame));
  }

  double refine(int iterations) {
    double last = 0;
    for (int i = 0; i < iterations; ++i) {
      Keyframe frame;
      if (!pick(i, frame))
        break;
      auto out = renderer_(model_, frame.pose.to(device_));
      auto loss = torch::l1_loss(out.color, frame.color.to(device_));
      if (options_.depth_weight > 0) {
        auto target = frame.depth.to(out.depth.device());
        loss = loss + options_.depth_weight * torch::l1_loss(out.depth * (target > 0), target);
      }
      model_.optimizer().zero_grad();
      loss.backward();
      model_.optimizer().step();
      last = loss.item<double>();
    }
    return last;
  }

  double depthError() {
    torch::NoGradGuard no_grad;
    std::lock_guard<std::mutex> lock(mutex_);
    double sum = 0;
    for (const auto &frame : frames_) {
      auto out = renderer_(model_, frame.pose.to(device_));
      sum += torch::l1_loss(out.depth, frame.depth).item<double>(); // [[device-loss-input]]
    }
    return frames_.empty() ? 0 : sum / static_cast<double>(frames_.size());
  }

  std::vector<double> baselines() const {
    std::vector<double> result;
    for (size_t i = 1; i < frames_.size(); ++i)
      result.push_back((frames_[i].pose - frames_[i - 1].pose).slice(1, 3).norm().item<double>());
    return result;
  }

private:
  bool pick(int i, Keyframe &frame) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (frames_.empty())
      return false;
    frame = frames_[static_cast<size_t>(i) % frames_.size()];
    return true;
  }

  GaussianModel model_;
  Renderer renderer_;
  Options options_;
  torch::Device device_;
  std::mutex mutex_;
  std::deque<Keyframe> frames_;
};

} // namespace gsmap

#ifdef DT_RUN
#include "../../../cases/cases.h"
using namespace gsmap;
static torch::Device gpu(torch::kCUDA, 1);
static ModelConfig config() { ModelConfig c; c.device = gpu; c.densify_threshold = 0; return c; }
static GaussianModel model() {
  GaussianModel m(config());
  m.createFromPoints(std::vector<float>(12, 1.f), std::vector<float>(12, 0.f));
  m.setupTraining();
  return m;
}
static void stepped(GaussianModel &m) { (m.xyz().sum() + m.opacity().sum()).backward(); m.optimizer().step(); }
static RenderResult render(GaussianModel &m, const torch::Tensor &pose) {
  auto s = m.xyz().sum() * pose.sum() + m.opacity().sum();
  return {s.expand({3, 4, 4}), s.expand({1, 4, 4}), {}};
}
static void filled(Mapper &m) {
  m.model().createFromPoints(std::vector<float>(12, 1.f), std::vector<float>(12, 0.f));
  m.model().setupTraining();
  for (int i = 0; i < 2; ++i)
    m.addKeyframe({i, torch::rand({3, 4, 4}, gpu), torch::rand({1, 4, 4}, gpu), torch::eye(4)});
}
void stats_ok() { auto m = model(); m.addDensificationStats(torch::rand({4, 3}, gpu)); }
void densify_then_stats_bad() {
  auto m = model();
  m.addDensificationStats(torch::rand({4, 3}, gpu));
  m.densifyAndClone();
  m.addDensificationStats(torch::rand({8, 3}, gpu));
}
void extend_bad() { auto m = model(); stepped(m); m.extend({1, 2, 3}); }
void insert_dense_ok() { auto m = model(); stepped(m); m.insertDense(torch::rand({2, 3})); m.addDensificationStats(torch::rand({6, 3}, gpu)); }
void prune_ok() { auto m = model(); m.prune({true, false, false, false}); m.addDensificationStats(torch::rand({3, 3}, gpu)); }
void reset_opacity_ok() { auto m = model(); m.resetOpacity(0.01f); }
void visible_bad() { float v[16] = {1}; auto m = model(); m.visible(v, 0.1f); }
void project_ok() { model().project(std::vector<float>(16, 1.f)); }
void export_xyz_bad() { model().exportXyz("x.xyz"); }
void save_ply_ok() { model().savePly("x.ply"); }
void exp_so3_bad() { expSO3(torch::rand({3}, gpu)); }
void exp_se3_ok() { expSE3(torch::rand({6}, gpu)); }
void ssim_bad() {
  for (int i = 0; i < 2; ++i) {
    torch::Device d(torch::kCUDA, i);
    ssim(torch::rand({3, 8, 8}, d), torch::rand({3, 8, 8}, d));
  }
}
void gradient_ok() {
  for (int i = 0; i < 2; ++i)
    gradientMagnitude(torch::rand({3, 8, 8}, torch::Device(torch::kCUDA, i)));
}
void psnr_ok() { psnr(torch::rand({3, 8, 8}, gpu), torch::rand({3, 8, 8}, gpu)); }
void refine_ok() { Mapper m(config(), render, {}); filled(m); m.refine(2); }
void depth_error_bad() { Mapper m(config(), render, {}); filled(m); m.depthError(); }
void baselines_ok() { Mapper m(config(), render, {}); filled(m); m.baselines(); }
DT_MAIN(stats_ok, densify_then_stats_bad, extend_bad, insert_dense_ok, prune_ok, reset_opacity_ok, visible_bad, project_ok,
        export_xyz_bad, save_ply_ok, exp_so3_bad, exp_se3_ok, ssim_bad, gradient_ok, psnr_ok, refine_ok, depth_error_bad,
        baselines_ok)
#endif
