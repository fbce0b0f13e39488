#include "cufft.h"
#include "spectral.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#define CUFFT_CHECK(expr)                                                                                    \
  do {                                                                                                       \
    const cufftResult cufft_status = (expr);                                                                 \
    TORCH_CHECK(cufft_status == CUFFT_SUCCESS, "cuFFT error ", cufft_status, " from " #expr);                \
  } while (0)

namespace specconv {
namespace {

__global__ void complex_mul_kernel(float2 *__restrict__ a, const float2 *__restrict__ b, int64_t n, int64_t period,
                                   float scale) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const float2 x = a[i], y = b[i % period];
  a[i] = make_float2((x.x * y.x - x.y * y.y) * scale, (x.x * y.y + x.y * y.x) * scale);
}

__global__ void power_kernel(const float2 *__restrict__ spectrum, const int64_t *__restrict__ lengths,
                             float *__restrict__ power, int64_t bins, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < total)
    power[i] = (spectrum[i].x * spectrum[i].x + spectrum[i].y * spectrum[i].y) / lengths[i / bins];
}

__global__ void window_kernel(float *__restrict__ frames, const float *__restrict__ window, int64_t n, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < total)
    frames[i] *= window[i % n];
}

__global__ void log_kernel(float *power, float floor, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < total)
    power[i] = __logf(power[i] + floor);
}

__global__ void phase_kernel(float2 *spectrum, float step, int64_t bins, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < total)
    spectrum[i].x += step * static_cast<float>(i % bins);
}

struct GainArgs {
  float2 *spectrum;
  const float *gains;
  int64_t bins;
  int64_t total;
};

__global__ void gain_kernel(GainArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < args.total)
    args.spectrum[i].x *= args.gains[i % args.bins];
}

constexpr int kBlock = 256;
unsigned blocks(int64_t n) { return static_cast<unsigned>((n + kBlock - 1) / kBlock); }
float2 *complex_ptr(const torch::Tensor &t) { return reinterpret_cast<float2 *>(t.data_ptr<float>()); }

} // namespace

PlanCache &PlanCache::global() {
  static PlanCache cache;
  return cache;
}

int PlanCache::get(int n, int batch, int type) {
  const int device = c10::cuda::current_device();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto key = std::make_tuple(device, n, batch, type);
  const auto found = plans_.find(key);
  if (found != plans_.end())
    return found->second;
  cufftHandle plan = 0;
  CUFFT_CHECK(cufftPlan1d(&plan, n, static_cast<cufftType>(type), batch));
  plans_.emplace(key, plan);
  return plan;
}

// (batch, n) float -> (batch, n / 2 + 1, 2) float
torch::Tensor rfft(const torch::Tensor &signal) {
  TORCH_CHECK(signal.is_cuda() && signal.dim() == 2, "rfft: expected (batch, n) on a GPU");
  const c10::cuda::CUDAGuard guard(signal.device());
  auto input = signal.contiguous();
  const int batch = input.size(0), n = input.size(1);
  auto spectrum = torch::empty({batch, n / 2 + 1, 2}, input.options());
  const cufftHandle plan = PlanCache::global().get(n, batch, CUFFT_R2C);
  CUFFT_CHECK(cufftSetStream(plan, at::cuda::getCurrentCUDAStream()));
  CUFFT_CHECK(cufftExecR2C(plan, input.data_ptr<float>(), complex_ptr(spectrum)));
  return spectrum;
}

torch::Tensor rfft_once(const torch::Tensor &signal) {
  TORCH_CHECK(signal.is_cuda() && signal.dim() == 2, "rfft_once: expected (batch, n) on a GPU");
  auto input = signal.contiguous();
  const int batch = input.size(0), n = input.size(1);
  auto spectrum = torch::empty({batch, n / 2 + 1, 2}, input.options());
  cufftHandle plan = 0;
  CUFFT_CHECK(cufftPlan1d(&plan, n, CUFFT_R2C, batch));
  const cufftResult status = cufftExecR2C(plan, input.data_ptr<float>(), complex_ptr(spectrum)); // [[device-missing-guard]]
  cufftDestroy(plan);
  TORCH_CHECK(status == CUFFT_SUCCESS, "cuFFT error ", status);
  return spectrum;
}

torch::Tensor irfft(const torch::Tensor &spectrum, int64_t n) {
  TORCH_CHECK(spectrum.is_cuda() && spectrum.size(-1) == 2, "irfft: expected a complex tensor on a GPU");
  auto stream = at::cuda::getCurrentCUDAStream(spectrum.get_device());
  const c10::cuda::CUDAStreamGuard guard(stream);
  auto input = spectrum.clone();
  auto signal = torch::empty({input.size(0), n}, input.options());
  const cufftHandle plan = PlanCache::global().get(static_cast<int>(n), static_cast<int>(input.size(0)), CUFFT_C2R);
  CUFFT_CHECK(cufftSetStream(plan, stream));
  CUFFT_CHECK(cufftExecC2R(plan, complex_ptr(input), signal.data_ptr<float>()));
  return signal.div_(static_cast<double>(n));
}

torch::Tensor convolve(const torch::Tensor &signal, const torch::Tensor &filter) {
  const int64_t n = signal.size(1);
  auto padded = torch::constant_pad_nd(filter, {0, n - filter.size(1)});
  auto spectrum = rfft(signal);
  auto response = rfft(padded);
  complex_mul_kernel<<<blocks(spectrum.numel() / 2), kBlock>>>(complex_ptr(spectrum), complex_ptr(response), // [[device-missing-guard]]
                                                               spectrum.numel() / 2, response.numel() / 2, 1.f);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return irfft(spectrum, n);
}

torch::Tensor convolve_bank(const torch::Tensor &signal, const torch::Tensor &filters) {
  const int64_t n = signal.size(1);
  std::vector<torch::Tensor> outputs;
  const auto spectrum = rfft(signal);
  const at::cuda::OptionalCUDAGuard guard(at::device_of(signal));
  for (const auto &filter : filters.unbind(0)) {
    auto response = rfft(torch::constant_pad_nd(filter.unsqueeze(0), {0, n - filter.size(0)}));
    auto product = spectrum.clone();
    complex_mul_kernel<<<blocks(product.numel() / 2), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(
        complex_ptr(product), complex_ptr(response), product.numel() / 2, response.numel() / 2, 1.f);
    outputs.push_back(irfft(product, n));
  }
  return torch::stack(outputs, 1);
}

/// `lengths` counts the valid samples of each signal; it is kept on the host by the loader.
torch::Tensor power_spectrum(const torch::Tensor &signal, const torch::Tensor &lengths) {
  TORCH_CHECK(lengths.device().is_cpu() && lengths.scalar_type() == torch::kLong, "lengths must be int64 on the host");
  auto spectrum = rfft(signal);
  const c10::cuda::CUDAGuard guard(signal.device());
  auto power = torch::empty({spectrum.size(0), spectrum.size(1)}, spectrum.options());
  power_kernel<<<blocks(power.numel()), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-kernel-launch]]
      complex_ptr(spectrum), lengths.data_ptr<int64_t>(), power.data_ptr<float>(), power.size(1), power.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return power;
}

torch::Tensor welch(const torch::Tensor &signal, int64_t segment) {
  TORCH_CHECK(signal.is_cuda(), "welch: expected a signal on a GPU");
  auto window = torch::hann_window(segment, torch::kCUDA);
  auto frames = signal.unfold(1, segment, segment / 2).reshape({-1, segment}).contiguous();
  const c10::cuda::CUDAGuard guard(frames.device());
  window_kernel<<<blocks(frames.numel()), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-lost-index]]
      frames.data_ptr<float>(), window.data_ptr<float>(), segment, frames.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return rfft(frames).pow(2).sum(-1).view({signal.size(0), -1, segment / 2 + 1}).mean(1);
}

torch::Tensor log_compress(const torch::Tensor &power, double floor) {
  TORCH_CHECK(power.is_cuda(), "log_compress: expected a tensor on a GPU");
  at::cuda::OptionalCUDAGuard guard;
  auto out = power.clone();
  log_kernel<<<blocks(out.numel()), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(out.data_ptr<float>(), // [[device-missing-guard]]
                                                                                   static_cast<float>(floor), out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor phase_shift(const torch::Tensor &spectrum, double seconds, cudaStream_t stream) {
  TORCH_CHECK(spectrum.is_cuda(), "phase_shift: expected a tensor on a GPU");
  const int previous = c10::cuda::current_device();
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(spectrum.get_device()));
  auto out = spectrum.clone();
  phase_kernel<<<blocks(out.numel() / 2), kBlock, 0, stream>>>(complex_ptr(out), static_cast<float>(6.2831853 * seconds),
                                                               out.size(1), out.numel() / 2);
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(previous));
  return out;
}

torch::Tensor apply_gains(const torch::Tensor &spectrum, const std::vector<float> &gains) {
  TORCH_CHECK(static_cast<int64_t>(gains.size()) == spectrum.size(1), "one gain per bin is expected");
  const c10::cuda::CUDAGuard guard(spectrum.device());
  auto out = spectrum.clone();
  const auto table = torch::tensor(gains, torch::kFloat).to(out.device(), /*non_blocking=*/true);
  GainArgs args{};
  args.spectrum = complex_ptr(out);
  args.gains = table.data_ptr<float>();
  args.bins = out.size(1);
  args.total = out.numel() / 2;
  gain_kernel<<<blocks(args.total), kBlock, 0, at::cuda::getCurrentCUDAStream()>>>(args);
  return out;
}

} // namespace specconv
