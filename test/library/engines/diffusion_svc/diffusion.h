#pragma once

#include <torch/script.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace diffusion {

struct Frame {
  int width = 0, height = 0;
  const float* planes = nullptr;
};

class NoiseSchedule {
 public:
  explicit NoiseSchedule(int64_t steps, double beta_start = 1e-4, double beta_end = 2e-2);
  torch::Tensor add_noise(const torch::Tensor& x0, const torch::Tensor& noise, const torch::Tensor& t) const;
  torch::Tensor velocity(const torch::Tensor& x0, const torch::Tensor& noise, const torch::Tensor& t) const;
  torch::Tensor snr(const torch::Tensor& t) const;
  const torch::Tensor& alphas() const { return alphas_cumprod_; }
  int64_t size() const { return alphas_cumprod_.size(0); }

 private:
  torch::Tensor alphas_cumprod_;
};

// One update of the latents.
class Sampler {
 public:
  explicit Sampler(std::shared_ptr<NoiseSchedule> schedule) : schedule_(std::move(schedule)) {}
  virtual ~Sampler() = default;
  virtual torch::Tensor step(const torch::Tensor& latents, const torch::Tensor& eps, int64_t t) = 0;

 protected:
  std::shared_ptr<NoiseSchedule> schedule_;
};

class Ddim : public Sampler {
 public:
  using Sampler::Sampler;
  torch::Tensor step(const torch::Tensor& latents, const torch::Tensor& eps, int64_t t) override;
};

class EulerAncestral : public Sampler {
 public:
  EulerAncestral(std::shared_ptr<NoiseSchedule> schedule, double eta) : Sampler(std::move(schedule)), eta_(eta) {}
  torch::Tensor step(const torch::Tensor& latents, const torch::Tensor& eps, int64_t t) override;

 private:
  double eta_;
};

class MultiStep : public Sampler {
 public:
  using Sampler::Sampler;
  torch::Tensor step(const torch::Tensor& latents, const torch::Tensor& eps, int64_t t) override;

 private:
  std::vector<torch::Tensor> history_;
};

using Denoiser = std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&)>;

class Pipeline {
 public:
  Pipeline(torch::Device device, std::unique_ptr<Sampler> sampler);

  void to(torch::Device device);
  void load_vae(const std::string& file);
  void load_safety(const std::string& file);
  void set_control(const float* hint, int height, int width);
  void set_mask(const float* mask, int height, int width);
  void set_negative(const torch::Tensor& embedding) { negative_ = embedding.to(device_); }

  torch::Tensor encode_prompt(const std::vector<int64_t>& ids) const;
  torch::Tensor guide(const torch::Tensor& latents, const torch::Tensor& prompt, int64_t t, double scale) const;
  torch::Tensor run(const torch::Tensor& prompt, int64_t steps);
  torch::Tensor inpaint(const torch::Tensor& original, const torch::Tensor& latents) const;
  torch::Tensor controlled(const torch::Tensor& latents) const;
  torch::Tensor decode(const torch::Tensor& latents);
  torch::Tensor decode_tiled(const torch::Tensor& latents, int64_t tile) const;
  bool safe(const torch::Tensor& image);
  Frame preview(const torch::Tensor& image);
  std::vector<uint8_t> to_bytes(const torch::Tensor& image) const;
  std::vector<uint8_t> thumbnail(const torch::Tensor& image) const;

 private:
  torch::Device device_;
  std::unique_ptr<Sampler> sampler_;
  torch::Tensor token_table_, projection_, negative_, control_, mask_;
  torch::jit::Module vae_, safety_;
};

torch::Tensor timestep_embedding(const torch::Tensor& t, int64_t width);
torch::Tensor fourier_embedding(const torch::Tensor& t, int64_t width);

// Fine-tuning of low-rank adapters.
class AdapterTrainer {
 public:
  AdapterTrainer(int64_t width, int64_t rank, torch::Device device);
  float step(const torch::Tensor& latents, const NoiseSchedule& schedule);
  float step_weighted(const torch::Tensor& latents, const NoiseSchedule& schedule);
  void ema_update(double decay);

 private:
  torch::Tensor predict(const torch::Tensor& noisy) const;
  torch::Device device_;
  torch::Tensor down_, up_, ema_down_, ema_up_;
};

// The devices of a host: all but the last denoise, the last one decodes.
struct Placement {
  std::vector<torch::Device> denoise;
  torch::Device decode{torch::kCPU};
};
Placement split_host();
torch::Device busiest_free(const std::vector<int64_t>& load);

} // namespace diffusion
