#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace specconv {

/// Plans by device, length and batch. A plan belongs to the device that is current when it is made.
class PlanCache {
public:
  static PlanCache &global();
  int get(int n, int batch, int type);
  size_t size() const { return plans_.size(); }

private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, int, int>, int> plans_;
};

torch::Tensor rfft(const torch::Tensor &signal);
torch::Tensor rfft_once(const torch::Tensor &signal);
torch::Tensor irfft(const torch::Tensor &spectrum, int64_t n);
torch::Tensor convolve(const torch::Tensor &signal, const torch::Tensor &filter);
torch::Tensor convolve_bank(const torch::Tensor &signal, const torch::Tensor &filters);
torch::Tensor power_spectrum(const torch::Tensor &signal, const torch::Tensor &lengths);
torch::Tensor welch(const torch::Tensor &signal, int64_t segment);
torch::Tensor log_compress(const torch::Tensor &power, double floor);
torch::Tensor phase_shift(const torch::Tensor &spectrum, double seconds, cudaStream_t stream);
torch::Tensor apply_gains(const torch::Tensor &spectrum, const std::vector<float> &gains);

struct SpectralConvImpl : torch::nn::Module {
  SpectralConvImpl(int64_t channels, int64_t modes);
  torch::Tensor forward(const torch::Tensor &x);
  torch::Tensor energy(const torch::Tensor &x);

  int64_t modes;
  torch::Tensor weight, taper, rolloff;
};
TORCH_MODULE(SpectralConv);

SpectralConv make_layer(int64_t channels, int64_t modes, torch::Device device);

class MelBank {
public:
  MelBank(int64_t bins, int64_t mels, torch::Device device);
  torch::Tensor apply(const torch::Tensor &power) const;
  float peak() const;
  std::vector<int64_t> centers() const;
  std::string describe() const;

private:
  torch::Device device_;
  torch::Tensor bank_;
};

} // namespace specconv
