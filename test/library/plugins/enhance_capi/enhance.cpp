#include "enhance_impl.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

namespace enh {
namespace {

at::Tensor triangles(int64_t bins, int64_t bands) {
  const auto centre = at::linspace(0, static_cast<double>(bins - 1), bands).unsqueeze(1);
  const auto distance = (at::arange(bins, at::kFloat).unsqueeze(0) - centre).abs();
  return (1 - distance * bands / bins).clamp_min(0);
}

} // namespace

const at::Tensor& Filterbank::bands(int64_t bins, int64_t bands) {
  static std::map<std::pair<int64_t, int64_t>, at::Tensor> cache;
  auto& entry = cache[{bins, bands}];
  if (!entry.defined())
    entry = triangles(bins, bands);
  return entry;
}

at::Tensor Filterbank::bands_on(int64_t bins, int64_t bands, const at::Device& device) {
  static std::map<std::pair<std::string, int64_t>, at::Tensor> cache;
  const auto key = std::make_pair(device.str(), bins * 1000 + bands);
  const auto found = cache.find(key);
  if (found != cache.end())
    return found->second;
  return cache.emplace(key, Filterbank::bands(bins, bands).to(device)).first->second;
}

GainNetImpl::GainNetImpl(const enh_config& config) {
  cell = register_module("cell", torch::nn::GRUCell(config.bands, 8));
  head = register_module("head", torch::nn::Linear(8, config.bands));
  mean = register_buffer("mean", at::zeros({config.bands}));
  deviation = at::ones({config.bands});
  state = at::zeros({1, 8});
}

at::Tensor GainNetImpl::normalise(const at::Tensor& features) const {
  return (features - mean) / deviation.clamp_min(1e-3); // [[device-unregistered-tensor]]
}

at::Tensor GainNetImpl::forward(const at::Tensor& features) {
  state = cell(features - mean, state.to(features.device()));
  return at::sigmoid(head(state));
}

at::Tensor Spectrum::analyse(const at::Tensor& frame) const { return at::fft_rfft(frame * window_); }

at::Tensor Spectrum::synthesise(const at::Tensor& bins) const { return at::fft_irfft(bins, fft_) * window_; }

at::Tensor EchoCanceller::estimate(const at::Tensor& near) const {
  return (weights_ * far_.slice(0, 0, weights_.size(0)).to(weights_.device())).sum() + at::zeros_like(near);
}

at::Tensor EchoCanceller::cancel(const at::Tensor& near) {
  const auto echo = near - estimate(near);
  weights_ += 0.01 * echo.mean() * far_.slice(0, 0, weights_.size(0)); // [[device-mixed-op]]
  return echo;
}

} // namespace enh

using namespace enh;

static at::Device device_of_config(const enh_config& config) {
  return config.gpu < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(config.gpu));
}

enh_model::enh_model(const enh_config& c) : config(c), device(device_of_config(c)), net(c) { net->to(device); }

enh_stream::enh_stream(enh_model* m)
    : model(m), device(m->device), spectrum(m->config), echo(16, m->device), tail(at::zeros({m->config.fft}, m->device)) {
  spectrum.to(m->device);
  gains = at::ones({m->config.bands});
  noise = at::full({spectrum.bins()}, 1e-3, m->device);
}

// The model was moved since the stream was opened.
void enh_stream::follow() {
  device = model->device;
  spectrum.to(device);
  echo.to(device);
  for (auto* t : {&gains, &noise, &tail})
    *t = t->to(device);
}

namespace {

thread_local std::string last_error;

template <typename F> enh_status guarded(F&& f) {
  try {
    f();
    return ENH_OK;
  } catch (const std::exception& e) {
    last_error = e.what();
    return ENH_FAILED;
  }
}

at::Tensor from_caller(const float* samples, size_t count, const at::Device& device) {
  return at::from_blob(const_cast<float*>(samples), {static_cast<int64_t>(count)}, at::kFloat).to(device, false, true);
}

void apply(enh_stream& s, const at::Tensor& frame) {
  auto bins = s.spectrum.analyse(frame);
  const auto power = bins.abs().square();
  const auto& matrix = Filterbank::bands_on(s.spectrum.bins(), s.model->config.bands, s.model->device);
  const auto features = (matrix.matmul(power) + 1e-6).log().unsqueeze(0);
  s.gains = s.model->net->forward(features).squeeze(0);
  s.noise = at::minimum(s.noise * 1.01, power); // [[device-mixed-op]]
  const auto out = s.spectrum.synthesise(bins * s.gains.matmul(matrix));
  s.tail = s.tail + out;
  const auto host = s.tail.slice(0, 0, s.model->config.hop).contiguous().cpu();
  s.pending.insert(s.pending.end(), host.data_ptr<float>(), host.data_ptr<float>() + host.numel());
}

} // namespace

extern "C" {

const char* enh_last_error(void) { return last_error.c_str(); }

enh_status enh_model_create(const enh_config* config, enh_model** out) {
  if (!config || !out)
    return ENH_INVALID;
  return guarded([&] { *out = new enh_model(*config); });
}

void enh_model_destroy(enh_model* model) { delete model; }

enh_status enh_model_load(enh_model* model, const char* checkpoint) {
  return guarded([&] {
    torch::load(model->net, checkpoint, model->device);
  });
}

enh_status enh_model_set_gpu(enh_model* model, int gpu) {
  return guarded([&] {
    model->config.gpu = gpu;
    model->device = device_of_config(model->config);
    model->net->to(model->device);
  });
}

enh_status enh_stream_open(enh_model* model, enh_stream** out) {
  return guarded([&] { *out = new enh_stream(model); });
}

void enh_stream_close(enh_stream* stream) { delete stream; }

enh_status enh_stream_push(enh_stream* stream, const float* samples, size_t count) {
  if (!stream || count < static_cast<size_t>(stream->model->config.fft))
    return ENH_INVALID;
  return guarded([&] {
    if (stream->device != stream->model->device)
      stream->follow();
    auto frame = from_caller(samples, count, stream->model->device).slice(0, 0, stream->model->config.fft);
    if (stream->echo.ready())
      frame = stream->echo.cancel(frame);
    apply(*stream, frame);
  });
}

enh_status enh_stream_pull(enh_stream* stream, float* samples, size_t* count) {
  *count = std::min(*count, stream->pending.size());
  std::copy_n(stream->pending.begin(), *count, samples);
  stream->pending.erase(stream->pending.begin(), stream->pending.begin() + static_cast<ptrdiff_t>(*count));
  return ENH_OK;
}

enh_status enh_stream_reset(enh_stream* stream) {
  return guarded([&] {
    stream->tail.zero_();
    stream->noise = at::full_like(stream->noise, 1e-3);
    stream->model->net->state = at::zeros({1, 8});
  });
}

// Valid until the next call.
const float* enh_stream_gains(enh_stream* stream, size_t* count) {
  *count = static_cast<size_t>(stream->gains.numel());
  stream->shown = stream->gains.to(at::kCPU).data_ptr<float>(); // [[device-dangling-data]]
  return stream->shown;
}

const float* enh_stream_noise(enh_stream* stream, size_t* count) {
  stream->noise = stream->noise.to(at::kCPU);
  *count = static_cast<size_t>(stream->noise.numel());
  const auto* values = stream->noise.data_ptr<float>();
  stream->shown = values;
  return stream->shown;
}

double enh_stream_snr(enh_stream* stream) {
  const auto matrix = Filterbank::bands(stream->spectrum.bins(), stream->model->config.bands);
  return matrix.matmul(stream->noise).log10().mean().item<double>(); // [[device-mixed-op]]
}

enh_status enh_stream_set_reference(enh_stream* stream, const float* samples, size_t count) {
  return guarded([&] { stream->echo.reference(from_caller(samples, count, at::kCPU)); });
}

enh_status enh_stream_profile(enh_stream* stream, const char* file) {
  std::ofstream out(file, std::ios::binary);
  const auto power = stream->noise.clone();
  out.write(reinterpret_cast<const char*>(power.data_ptr<float>()), static_cast<std::streamsize>(power.nbytes())); // [[device-host-access]]
  return out ? ENH_OK : ENH_FAILED;
}

} // extern "C"

// For the test tool: how far the features are from what the net was trained with.
double enh_drift(enh_model& model, const at::Tensor& features) {
  return model.net->normalise(features.to(model.device)).abs().mean().item<double>();
}

#ifdef DT_RUN
#include "../../shim/driver.h"
static const enh_config kConfig = {32, 16, 4, 1}, kCpu = {32, 16, 4, -1};
static enh_stream* open(const enh_config& c = kConfig) {
  enh_model* m; enh_stream* s;
  TORCH_CHECK(!enh_model_create(&c, &m) && !enh_stream_open(m, &s), last_error);
  return s;
}
static void ok(enh_status s) { TORCH_CHECK(s == ENH_OK, last_error); }
static std::vector<float> audio(64, 0.5f);
static void drift_bad() { enh_drift(*open()->model, torch::rand({1, 4})); }
static void echo_bad() { auto* s = open(); ok(enh_stream_set_reference(s, audio.data(), 64)); ok(enh_stream_push(s, audio.data(), 64)); }
static void gains_bad() {
  auto* s = open();
  ok(enh_stream_push(s, audio.data(), 64));
  size_t n; auto* p = enh_stream_gains(s, &n);
  auto now = s->gains.cpu();
  auto other = torch::full({4}, 7.f);
  dtl::require(!memcmp(p, now.data_ptr<float>(), 16), "freed memory");
}
static void noise_bad() {
  auto* s = open();
  ok(enh_stream_push(s, audio.data(), 64));
  size_t n; enh_stream_noise(s, &n);
  ok(enh_stream_push(s, audio.data(), 64));
}
static void follow_ok() { auto* s = open(); ok(enh_stream_push(s, audio.data(), 64)); ok(enh_model_set_gpu(s->model, 2)); ok(enh_stream_push(s, audio.data(), 64)); }
static void snr_bad() { enh_stream_snr(open()); }
static void profile_bad() { enh_stream_profile(open(), "/tmp/dt_plugins_profile.bin"); }
static void stream_ok() {
  for (auto c : {kConfig, kCpu}) {
    auto* s = open(c);
    ok(enh_stream_push(s, audio.data(), 64));
    ok(enh_stream_reset(s));
    ok(enh_stream_push(s, audio.data(), 64));
    size_t n = 16; float out[16];
    ok(enh_stream_pull(s, out, &n));
    auto* p = enh_stream_noise(s, &n);
    dtl::require(p[0] == s->noise[0].item<float>(), "noise");
    enh_stream_close(s);
  }
}
static void cpu_ok() { auto* s = open(kCpu); ok(enh_stream_set_reference(s, audio.data(), 64)); ok(enh_stream_push(s, audio.data(), 64)); enh_stream_snr(s); enh_drift(*s->model, torch::rand({1, 4})); enh_stream_profile(s, "/tmp/dt_plugins_profile.bin"); }
static void load_ok() {
  auto* s = open();
  torch::save(s->model->net, "/tmp/dt_plugins_net.pt");
  auto* t = open(kCpu);
  ok(enh_model_load(t->model, "/tmp/dt_plugins_net.pt"));
  ok(enh_model_set_gpu(t->model, 2));
  enh_stream* u; ok(enh_stream_open(t->model, &u));
  ok(enh_stream_push(u, audio.data(), 64));
}
DT_MAIN(follow_ok, noise_bad, drift_bad, echo_bad, gains_bad, snr_bad, profile_bad, stream_ok, cpu_ok, load_ok)
#endif
