#include "diffusion.h"

#include <algorithm>

namespace diffusion {

namespace F = torch::nn::functional;

Pipeline::Pipeline(torch::Device device, std::unique_ptr<Sampler> sampler)
    : device_(device), sampler_(std::move(sampler)) {
  token_table_ = torch::rand({32, 8}, device_);
  projection_ = torch::rand({8, 4}, device_);
  mask_ = torch::ones({8, 8}, device_);
}

void Pipeline::to(torch::Device device) {
  device_ = device;
  token_table_ = token_table_.to(device);
  projection_ = projection_.to(device);
  mask_ = mask_.to(device);
  if (control_.defined())
    control_ = control_.to(device);
}

void Pipeline::load_vae(const std::string& file) {
  vae_ = torch::jit::load(file);
  vae_.eval();
}

void Pipeline::load_safety(const std::string& file) {
  safety_ = torch::jit::load(file, torch::kCPU);
  safety_.eval();
}

void Pipeline::set_control(const float* hint, int height, int width) {
  std::vector<float> scaled(hint, hint + height * width);
  for (auto& v : scaled)
    v = v * 2 - 1;
  const auto options = torch::TensorOptions().dtype(torch::kFloat).device(device_);
  control_ = torch::from_blob(scaled.data(), {1, 1, height, width}, options).clone(); // [[device-host-access]]
}

void Pipeline::set_mask(const float* mask, int height, int width) {
  mask_ = torch::from_blob(const_cast<float*>(mask), {height, width}).to(device_);
}

torch::Tensor Pipeline::encode_prompt(const std::vector<int64_t>& ids) const {
  const auto rows = torch::tensor(ids, torch::kLong);
  return token_table_.index({rows}).mean(0, true);
}

torch::Tensor Pipeline::guide(const torch::Tensor& latents, const torch::Tensor& prompt, int64_t t,
                              double scale) const {
  const auto condition = prompt.to(device_);
  const auto both = negative_.defined() ? torch::cat({negative_, condition}) : torch::cat({torch::zeros_like(condition), condition}); // [[device-mixed-op]]
  const auto step = torch::full({both.size(0)}, static_cast<double>(t), both.options());
  const auto bias = both.matmul(projection_) + timestep_embedding(step, 4);
  const auto eps = latents.to(device_) * 0.1 + bias.view({2, 1, 4, 1, 1});
  const auto parts = eps.chunk(2);
  return (parts[0] + scale * (parts[1] - parts[0])).squeeze(0);
}

torch::Tensor Pipeline::run(const torch::Tensor& prompt, int64_t steps) {
  torch::NoGradGuard no_grad;
  auto latents = torch::randn({1, 4, 8, 8}, device_);
  for (int64_t t = steps - 1; t >= 0; --t)
    latents = sampler_->step(latents, guide(latents, prompt, t, 7.5), t);
  return latents;
}

torch::Tensor Pipeline::inpaint(const torch::Tensor& original, const torch::Tensor& latents) const {
  const auto keep = mask_.view({1, 1, 8, 8});
  return latents * keep + original.to(latents.device()) * (1 - keep);
}

torch::Tensor Pipeline::controlled(const torch::Tensor& latents) const {
  if (!control_.defined())
    return latents;
  const auto resized = F::interpolate(control_, F::InterpolateFuncOptions().size(std::vector<int64_t>{8, 8}));
  return latents + 0.1 * resized;
}

torch::Tensor Pipeline::decode(const torch::Tensor& latents) {
  torch::NoGradGuard no_grad;
  const auto scaled = latents.to(device_) / 0.18215;
  return vae_.forward({scaled}).toTensor().clamp(0, 1); // [[device-load-placement]]
}

torch::Tensor Pipeline::decode_tiled(const torch::Tensor& latents, int64_t tile) const {
  auto out = torch::zeros({latents.size(0), 3, latents.size(2), latents.size(3)});
  for (int64_t y = 0; y < latents.size(2); y += tile)
    out.slice(2, y, y + tile).copy_(latents.slice(2, y, y + tile).slice(1, 0, 3).sigmoid());
  return out;
}

bool Pipeline::safe(const torch::Tensor& image) {
  torch::NoGradGuard no_grad;
  const auto score = safety_.forward({image.to(torch::kCPU).flatten().slice(0, 0, 4)}).toTensor();
  return score.data_ptr<float>()[0] < 1e6f;
}

Frame Pipeline::preview(const torch::Tensor& image) {
  Frame frame;
  frame.height = static_cast<int>(image.size(-2));
  frame.width = static_cast<int>(image.size(-1));
  frame.planes = image.to(torch::kCPU).data_ptr<float>(); // [[device-dangling-data]]
  return frame;
}

std::vector<uint8_t> Pipeline::to_bytes(const torch::Tensor& image) const {
  const auto quantized = image.to(device_).mul(255).clamp(0, 255).to(torch::kUInt8).permute({1, 2, 0}).contiguous();
  const auto* first = quantized.data_ptr<uint8_t>();
  return std::vector<uint8_t>(first, first + quantized.numel()); // [[device-host-access]]
}

std::vector<uint8_t> Pipeline::thumbnail(const torch::Tensor& image) const {
  const auto small = F::avg_pool2d(image.to(device_).unsqueeze(0), F::AvgPool2dFuncOptions(2)).squeeze(0);
  const auto bytes = small.mul(255).to(torch::TensorOptions().dtype(torch::kUInt8).device(torch::kCPU)).contiguous();
  return {bytes.data_ptr<uint8_t>(), bytes.data_ptr<uint8_t>() + bytes.numel()};
}

AdapterTrainer::AdapterTrainer(int64_t width, int64_t rank, torch::Device device) : device_(device) {
  down_ = torch::rand({width, rank}, torch::device(device).requires_grad(true));
  up_ = torch::rand({rank, width}, torch::device(device).requires_grad(true));
  ema_down_ = down_.detach().clone();
  ema_up_ = up_.detach().clone();
}

torch::Tensor AdapterTrainer::predict(const torch::Tensor& noisy) const { return noisy.matmul(down_).matmul(up_); }

float AdapterTrainer::step(const torch::Tensor& latents, const NoiseSchedule& schedule) {
  const auto noise = torch::randn_like(latents);
  const auto t = torch::randint(schedule.size(), {latents.size(0)}, torch::kLong);
  const auto noisy = schedule.add_noise(latents, noise, t).to(device_);
  const auto loss = torch::mse_loss(predict(noisy), noise); // [[device-loss-input]]
  loss.backward();
  return loss.item<float>();
}

float AdapterTrainer::step_weighted(const torch::Tensor& latents, const NoiseSchedule& schedule) {
  const auto x0 = latents.to(device_);
  const auto noise = torch::randn_like(x0);
  const auto t = torch::randint(schedule.size(), {x0.size(0)}, torch::device(device_).dtype(torch::kLong));
  const auto weight = schedule.snr(t).clamp_max(5).unsqueeze(1);
  const auto loss = (weight * (predict(schedule.add_noise(x0, noise, t)) - noise).pow(2)).mean();
  loss.backward();
  return loss.item<float>();
}

void AdapterTrainer::ema_update(double decay) {
  torch::NoGradGuard no_grad;
  ema_down_.mul_(decay).add_(down_, 1 - decay);
  ema_up_.mul_(decay).add_(up_, 1 - decay);
}

Placement split_host() {
  Placement out;
  const auto count = static_cast<c10::DeviceIndex>(torch::cuda::device_count());
  if (count == 0) {
    out.denoise.emplace_back(torch::kCPU);
    return out;
  }
  for (c10::DeviceIndex i = 0; i + 1 < count; ++i)
    out.denoise.emplace_back(torch::kCUDA, i);
  out.decode = torch::Device(torch::kCUDA, count); // [[device-lost-index]]
  return out;
}

torch::Device busiest_free(const std::vector<int64_t>& load) {
  const auto best = std::min_element(load.begin(), load.end()) - load.begin();
  return best < static_cast<int64_t>(torch::cuda::device_count())
             ? torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(best))
             : torch::Device(torch::kCPU);
}

} // namespace diffusion

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace diffusion;
static std::shared_ptr<NoiseSchedule> schedule() { return std::make_shared<NoiseSchedule>(20); }
template <typename S = Ddim, typename... A> static Pipeline pipe(A... a) { return Pipeline(dtl::dev(1), std::make_unique<S>(schedule(), a...)); }
static void module(const char* file) {
  torch::jit::Module m("M");
  m.register_parameter("w", torch::rand({8, 8}), false);
  m.define("def forward(self, x):\n  return x.mean() + torch.matmul(x, self.w)\n");
  m.save(file);
}
static void velocity_bad() { schedule()->velocity(dtl::gpu({2, 4}), dtl::gpu({2, 4}), torch::tensor({3, 4}, torch::kLong)); }
static void euler_bad() { auto p = pipe<EulerAncestral>(1.0); p.run(p.encode_prompt({1, 2}), 4); }
static void negative_bad() {
  auto p = pipe();
  p.set_negative(torch::rand({1, 8}));
  p.to(dtl::dev(2));
  p.run(p.encode_prompt({1, 2}), 2);
}
static void control_bad() { auto p = pipe(); std::vector<float> h(64, 0.5f); p.set_control(h.data(), 8, 8); p.controlled(dtl::gpu({1, 4, 8, 8})); }
static void vae_bad() { module("vae.pt"); auto p = pipe(); p.load_vae("vae.pt"); p.decode(dtl::gpu({1, 4, 8, 8})); }
static void preview_bad() {
  auto p = pipe();
  auto f = p.preview(dtl::gpu({3, 16, 16}) + 1);
  for (int i = 0; i < 768; ++i)
    dtl::require(f.planes[i] >= 1, "planes");
}
static void bytes_bad() { pipe().to_bytes(torch::rand({3, 8, 8})); }
static void trainer_bad() { AdapterTrainer(8, 2, dtl::dev(1)).step(torch::rand({4, 8}), *schedule()); }
static void split_bad() { auto s = split_host(); torch::rand({2}, s.decode); }
static void run_ok() { auto p = pipe(); p.to(dtl::dev(2)); p.set_negative(torch::rand({1, 8})); p.run(p.encode_prompt({1, 2}), 4); }
static void multi_ok() {
  auto p = pipe<MultiStep>();
  p.run(p.encode_prompt({3}), 5);
  p.to(dtl::dev(3));
  p.run(p.encode_prompt({3}), 5);
}
static void inpaint_ok() { auto p = pipe(); std::vector<float> m(64, 1); p.set_mask(m.data(), 8, 8); p.inpaint(torch::rand({1, 4, 8, 8}), dtl::gpu({1, 4, 8, 8})); }
static void decode_ok() { auto p = pipe(); p.decode_tiled(dtl::gpu({1, 4, 8, 8}), 4); p.thumbnail(torch::rand({3, 8, 8})); }
static void safety_ok() {
  torch::jit::Module m("M");
  m.register_parameter("w", torch::rand({4, 4}), false);
  m.define("def forward(self, x):\n  return torch.matmul(x, self.w)\n");
  m.save("safety.pt");
  auto p = pipe();
  p.load_safety("safety.pt");
  p.safe(dtl::gpu({3, 8, 8}));
}
static void weighted_ok() { AdapterTrainer t(8, 2, dtl::dev(1)); t.step_weighted(torch::rand({4, 8}), *schedule()); t.ema_update(0.9); }
static void cpu_trainer_ok() { AdapterTrainer t(8, 2, torch::kCPU); t.step(torch::rand({4, 8}), *schedule()); }
static void embed_ok() { timestep_embedding(dtl::gpu({3}), 8); fourier_embedding(dtl::gpu({3}), 8); }
static void placement_ok() { torch::rand({2}, busiest_free({4, 2, 7, 1})); torch::rand({2}, busiest_free({4, 2, 7, 3, 0})); }
DT_MAIN(velocity_bad, euler_bad, negative_bad, control_bad, vae_bad, preview_bad, bytes_bad, trainer_bad, split_bad,
        run_ok, multi_ok, inpaint_ok, decode_ok, safety_ok, weighted_ok, cpu_trainer_ok, embed_ok, placement_ok)
#endif
