#include <cuda_runtime.h>

#include "spectral.h"

#include <sstream>

namespace specconv {

SpectralConvImpl::SpectralConvImpl(int64_t channels, int64_t modes_) : modes(modes_) {
  weight = register_parameter("weight", torch::randn({channels, modes, 2}) / static_cast<double>(channels));
  taper = register_buffer("taper", torch::linspace(1.0, 0.5, modes));
  rolloff = torch::linspace(1.0, 0.0, modes).pow(2);
}

torch::Tensor SpectralConvImpl::forward(const torch::Tensor &x) {
  auto spectrum = torch::fft::rfft(x).narrow(-1, 0, modes);
  auto scaled = torch::view_as_real(spectrum) * weight;
  scaled = scaled * taper.unsqueeze(-1);
  return scaled.sum(-1).mean(-1);
}

torch::Tensor SpectralConvImpl::energy(const torch::Tensor &x) {
  auto power = torch::fft::rfft(x).abs().pow(2).narrow(-1, 0, modes);
  return (power * taper * rolloff).sum(-1); // [[device-unregistered-tensor]]
}

SpectralConv make_layer(int64_t channels, int64_t modes, torch::Device device) {
  SpectralConv layer(channels, modes);
  layer->to(device);
  return layer;
}

MelBank::MelBank(int64_t bins, int64_t mels, torch::Device device) : device_(device) {
  TORCH_CHECK(bins > mels && mels > 0, "cannot make ", mels, " mels of ", bins, " bins");
  auto host = torch::zeros({bins, mels});
  auto values = host.accessor<float, 2>();
  for (int64_t m = 0; m < mels; ++m) {
    const int64_t center = (m + 1) * bins / (mels + 1);
    for (int64_t b = 0; b < bins; ++b)
      values[b][m] = std::max(0.f, 1.f - std::abs(static_cast<float>(b - center)) * (mels + 1) / bins);
  }
  bank_ = host.to(device_);
}

torch::Tensor MelBank::apply(const torch::Tensor &power) const {
  return torch::matmul(power.to(device_), bank_).clamp_min(1e-10).log();
}

float MelBank::peak() const {
  const float *values = bank_.data_ptr<float>();
  return *std::max_element(values, values + bank_.numel()); // [[device-host-access]]
}

std::vector<int64_t> MelBank::centers() const {
  const auto index = bank_.argmax(0).to(torch::kCPU);
  const auto view = index.accessor<int64_t, 1>();
  std::vector<int64_t> result;
  for (int64_t m = 0; m < index.size(0); ++m)
    result.push_back(view[m]);
  return result;
}

std::string MelBank::describe() const {
  std::ostringstream out;
  out << "MelBank(" << bank_.size(0) << " -> " << bank_.size(1) << ", " << device_
      << ", peak at " << bank_.max().item<float>() << ")";
  return out.str();
}

} // namespace specconv

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace specconv;
using dtl::gpu;
void rfft_ok() { rfft(gpu({2, 8})); rfft(gpu({2, 8}, 2)); rfft(gpu({2, 8})); }
void rfft_once_bad() { rfft_once(gpu({2, 8})); }
void irfft_ok() { irfft(gpu({2, 5, 2}), 8); }
void convolve_bad() { convolve(gpu({1, 8}), gpu({1, 3})); }
void convolve_bank_ok() { convolve_bank(gpu({1, 8}), gpu({2, 3})); }
void power_spectrum_bad() { power_spectrum(gpu({2, 8}), torch::full({2}, 8, torch::kLong)); }
void welch_bad() { welch(gpu({2, 16}), 8); }
void log_compress_bad() { log_compress(gpu({2, 5}), 1e-6); }
void phase_shift_ok() { phase_shift(gpu({2, 5, 2}), .1, nullptr); }
void apply_gains_ok() { apply_gains(gpu({2, 5, 2}), {1, 2, 3, 4, 5}); }
void forward_ok() { make_layer(3, 4, dtl::dev(1))->forward(gpu({2, 3, 16})); }
void energy_bad() { make_layer(3, 4, dtl::dev(1))->energy(gpu({2, 3, 16})); }
void mel_apply_ok() { MelBank(9, 3, dtl::dev(1)).apply(torch::rand({2, 9})); }
void mel_peak_bad() { MelBank(9, 3, dtl::dev(1)).peak(); }
void mel_centers_ok() { MelBank(9, 3, dtl::dev(1)).centers(); }
void mel_describe_ok() { MelBank(9, 3, dtl::dev(1)).describe(); }
} // namespace
DT_MAIN(rfft_ok, rfft_once_bad, irfft_ok, convolve_bad, convolve_bank_ok, power_spectrum_bad, welch_bad, log_compress_bad,
        phase_shift_ok, apply_gains_ok, forward_ok, energy_bad, mel_apply_ok, mel_peak_bad, mel_centers_ok, mel_describe_ok)
#endif
