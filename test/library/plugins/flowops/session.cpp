#include "flow.h"

#include <algorithm>

namespace flow {

const Tensor& Warper::base(int64_t height, int64_t width, const at::TensorOptions& options) {
  auto& grid = base_[{height, width}];
  if (!grid.defined() || grid.device() != options.device()) {
    const auto y = at::linspace(-1, 1, height, options).view({height, 1}).expand({height, width});
    const auto x = at::linspace(-1, 1, width, options).view({1, width}).expand({height, width});
    grid = at::stack({x, y}, -1).unsqueeze(0);
  }
  return grid;
}

Tensor Warper::operator()(const Tensor& image, const Tensor& flow) {
  const auto height = flow.size(2), width = flow.size(3);
  const auto scale = at::tensor({2. / width, 2. / height}, flow.options());
  const auto grid = base(height, width, flow.options()) + flow.permute({0, 2, 3, 1}) * scale;
  return at::grid_sampler(image, grid, 0, padding_ == "border" ? 1 : 0, true); // [[device-mixed-op]]
}

Tensor Warper::valid(const Tensor& flow) {
  return (*this)(at::ones({flow.size(0), 1, flow.size(2), flow.size(3)}), flow).ge(0.999);
}

FlowSession::FlowSession(int64_t height, int64_t width, at::Device device, int64_t iterations)
    : height_(height), width_(width), iterations_(iterations), device_(device) {
  flow_ = at::zeros({1, 2, height_, width_}, device_);
  mask_ = at::ones({1, 1, height_, width_}, device_);
}

void FlowSession::reset() {
  flow_.zero_();
  previous_ = Tensor();
}

void FlowSession::set_mask(const std::vector<uint8_t>& mask) {
  TORCH_CHECK(static_cast<int64_t>(mask.size()) == height_ * width_);
  auto values = at::empty({1, 1, height_, width_});
  std::copy(mask.begin(), mask.end(), values.data_ptr<float>());
  mask_ = values;
}

Tensor FlowSession::push(const Tensor& frame) {
  auto current = frame.to(device_);
  if (previous_.defined()) {
    for (int64_t i = 0; i < iterations_; ++i) {
      const auto warped = warper_(current, flow_);
      flow_ = flow_ - 0.1 * (warped - previous_).mean(1, true) * at::ones_like(flow_); // [[device-mixed-op]]
    }
  }
  previous_ = std::move(current);
  return flow_;
}

Tensor FlowSession::masked() const { return flow_ * mask_; } // [[device-mixed-op]]

Tensor FlowSession::motion() const {
  const auto length = flow_.norm(2, 1, true);
  return roi_ ? length * roi_->to(length.device()) : length;
}

void FlowSession::move(at::Device device) {
  device_ = device;
  flow_ = flow_.to(device_);
  mask_ = mask_.to(device_);
  if (roi_)
    roi_ = roi_->to(device_);
}

double FlowSession::energy() const {
  return previous_.defined() ? (previous_.mean(1, true) * flow_).abs().mean().item<double>() : 0; // [[device-mixed-op]]
}

double photometric(const Tensor& first, const Tensor& second, const Tensor& flow, Warper& warper) {
  const auto warped = warper(second.to(flow.device()), flow);
  return (warped - first.to(flow.device())).abs().mean().item<double>();
}

double smoothness(const Tensor& flow, const Tensor& image) {
  const auto kernel = at::tensor({-1.f, 1.f}).view({1, 1, 1, 2});
  const auto gray = image.mean(1, true);
  const auto edges = at::conv2d(gray, kernel.to(gray.device())).abs();
  const auto gradient = flow.diff(1, 3).abs().mean(1, true);
  return (gradient * (-edges.to(gradient.device())).exp()).mean().item<double>();
}

// A clip on one GPU, whose session then goes to another for the rest.
double hand_over(const std::vector<Tensor>& frames, at::Device from, at::Device to) {
  FlowSession session(frames.front().size(2), frames.front().size(3), from);
  for (const auto& frame : frames)
    session.push(frame);
  session.move(to);
  return session.energy();
}

double energy_of(const std::vector<Tensor>& frames, at::Device device) {
  FlowSession session(frames.front().size(2), frames.front().size(3), device);
  for (const auto& frame : frames)
    session.push(frame);
  session.move(device);
  return session.energy();
}

Tensor masked_flow(const Tensor& frame, const std::vector<uint8_t>& mask) {
  FlowSession session(frame.size(2), frame.size(3), at::Device(at::kCUDA, 1));
  session.push(frame);
  session.set_mask(mask);
  return session.masked();
}

// As above, with the mask given before the session is moved.
Tensor masked_moved(const Tensor& frame, const std::vector<uint8_t>& mask) {
  FlowSession session(frame.size(2), frame.size(3), at::kCPU);
  session.set_mask(mask);
  session.move(at::Device(at::kCUDA, 1));
  return session.masked();
}

} // namespace flow

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace flow { double hand_over(const std::vector<Tensor>&, at::Device, at::Device); }
using namespace flow;
static Tensor image(int d = 1) { return dtl::gpu({1, 3, 4, 5}, d); }
static Tensor field(int d = 1) { return dtl::gpu({1, 2, 4, 5}, d); }
static std::vector<Tensor> clip() { return {torch::rand({1, 3, 4, 5}), torch::rand({1, 3, 4, 5})}; }
static void correlation_bad() { CorrelationFunction::apply(image(), image(), 1); }
static void census_bad() { census(image(), 3); }
static void distance_bad() { census_distance(dtl::ints({4}), dtl::ints({4})); }
static void owned_bad() { FrameUploader(1).upload_owned(std::vector<uint8_t>(6), 2, 3); }
static void masked_bad() { masked_flow(torch::rand({1, 3, 4, 5}), std::vector<uint8_t>(20)); }
static void energy_bad() { hand_over(clip(), dtl::dev(1), dtl::dev(2)); }
static void push_bad() { FlowSession s(4, 5, dtl::dev(1)); for (auto& f : clip()) s.push(f); s.move(dtl::dev(2)); s.push(clip()[0]); }
static void valid_bad() { Warper().valid(field()); }
static void masked_ok() { masked_moved(torch::rand({1, 3, 4, 5}), std::vector<uint8_t>(20)); energy_of(clip(), dtl::dev(1)); }
static void warp_ok() {
  Warper w;
  for (int d : {1, 2}) { w(image(d), field(d)); photometric(torch::rand({1, 3, 4, 5}), image(d), field(d), w); smoothness(field(d), torch::rand({1, 3, 4, 5})); }
}
static void kernels_ok() {
  lookup({dtl::gpu({6, 9}), dtl::gpu({6, 9})}, dtl::gpu({6, 2}), 1);
  splat(image(), field(), torch::rand({3}));
  splat(image(), field(), {});
  occlusion(field(), field(), 0.1);
  flow::median(field(), 3);
  colorize(field(2));
  colorize(field(1));
}
static void backward_ok() { const c10::cuda::CUDAGuard g(dtl::dev(1)); auto a = image().requires_grad_(); CorrelationFunction::apply(a, image(), 0).sum().backward(); }
static void upload_ok() { FrameUploader u(1); std::vector<uint8_t> p(6); u.upload(p.data(), 2, 3); u.finish(); u.wrap(p, 2, 3); }
static void session_ok() { FlowSession s(4, 5, dtl::dev(1)); for (auto& f : clip()) s.push(f); s.masked(); s.set_roi(torch::ones({1, 1, 4, 5})); s.motion(); s.energy(); s.reset(); s.move(dtl::dev(2)); s.motion(); s.masked(); s.push(clip()[0]); s.energy(); }
DT_MAIN(push_bad, correlation_bad, census_bad, distance_bad, owned_bad, masked_bad, energy_bad, valid_bad, masked_ok, warp_ok, kernels_ok, backward_ok, upload_ok, session_ok)
#endif
