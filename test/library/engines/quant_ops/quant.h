#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#define QO_CHECK_CUDA(t) TORCH_CHECK((t).device().is_cuda(), #t " is expected on a GPU")
#define QO_CHECK_SAME(a, b) TORCH_CHECK((a).device() == (b).device(), #a " and " #b " are on different devices")
#define QO_CHECK_RANK(t, n) TORCH_CHECK((t).dim() == (n), #t " must have " #n " dimensions")
#define QO_GUARD(t) const c10::cuda::CUDAGuard qo_guard_##t((t).device())

namespace quantops {

std::tuple<at::Tensor, at::Tensor> quantize_rows_cpu(const at::Tensor& x);
std::tuple<at::Tensor, at::Tensor> quantize_rows_cuda(const at::Tensor& x);
at::Tensor dequantize_cpu(const at::Tensor& q, const at::Tensor& scale);
at::Tensor dequantize_cuda(const at::Tensor& q, const at::Tensor& scale);
at::Tensor w4_matmul_cuda(const at::Tensor& x, const at::Tensor& packed, const at::Tensor& scales,
                          const c10::optional<at::Tensor>& zeros);
at::Tensor scaled_gemm_cuda(const at::Tensor& a, const at::Tensor& b, double alpha);
at::Tensor nf4_lookup_cuda(const at::Tensor& codes);
at::Tensor smooth_cuda(const at::Tensor& x, const at::Tensor& factors);
at::Tensor outlier_columns_cuda(const at::Tensor& x, double threshold);
at::Tensor stochastic_round_cuda(const at::Tensor& x, int64_t seed);
void fake_quant_inplace_cuda(at::Tensor& x, const at::Tensor& scale);

// Observers collect ranges while a model is calibrated.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void observe(const at::Tensor& x) = 0;
  virtual at::Tensor scale() const = 0;
};

class MinMaxObserver : public Observer {
 public:
  void observe(const at::Tensor& x) override;
  at::Tensor scale() const override;

 private:
  at::Tensor lo_, hi_;
};

class HistogramObserver : public Observer {
 public:
  explicit HistogramObserver(int64_t bins) : counts_(at::zeros({bins})) {}
  void observe(const at::Tensor& x) override;
  at::Tensor scale() const override;

 private:
  at::Tensor counts_;
  double max_ = 0;
};

class PercentileObserver : public Observer {
 public:
  explicit PercentileObserver(double percentile) : percentile_(percentile) {}
  void observe(const at::Tensor& x) override;
  at::Tensor scale() const override;

 private:
  double percentile_;
  std::vector<at::Tensor> samples_;
};

class Calibrator {
 public:
  void attach(const std::string& layer, std::unique_ptr<Observer> observer);
  void feed(const std::string& layer, const at::Tensor& x) { observers_.at(layer)->observe(x); }
  at::Tensor quantize(const std::string& layer, const at::Tensor& x) const;
  std::map<std::string, float> report() const;

 private:
  std::map<std::string, std::unique_ptr<Observer>> observers_;
};

class QuantLinear {
 public:
  QuantLinear(const at::Tensor& weight, const c10::optional<at::Tensor>& bias);
  void to(const at::Device& device);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor forward_reference(const at::Tensor& x) const;
  at::Tensor error(const at::Tensor& x) const;

 private:
  at::Tensor q_, scale_, weight_;
  c10::optional<at::Tensor> bias_;
};

} // namespace quantops
