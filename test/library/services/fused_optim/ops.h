#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace fused {

// optim_kernels.cu
void multi_tensor_adam(int64_t chunk, const at::Tensor& noop, std::vector<std::vector<at::Tensor>> lists, double lr,
                       double beta1, double beta2, double eps, int64_t step);
at::Tensor multi_tensor_l2norm(int64_t chunk, const at::Tensor& noop, std::vector<std::vector<at::Tensor>> lists);
void multi_tensor_scale(int64_t chunk, const at::Tensor& noop, std::vector<std::vector<at::Tensor>> lists, double by);
void fused_adagrad(const std::vector<std::vector<at::Tensor>>& lists, double lr, double eps);
void fused_sgd(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, double lr);

// quant.cu
at::Tensor group_absmax(const at::Tensor& x, int64_t group);
at::Tensor quantize_groups(const at::Tensor& x, const at::Tensor& absmax, int64_t group);
at::Tensor dequantize_groups(const at::Tensor& codes, const at::Tensor& absmax, int64_t group);
at::Tensor int8_scales(const at::Tensor& weight);
void write_statistics(const at::Tensor& x, at::Tensor& mapped);

at::Tensor nf4_codes(const at::Tensor& normalised);
at::Tensor nf4_values(const at::Tensor& codes);
at::Tensor smooth_scales(const at::Tensor& activations, const at::Tensor& weight, double alpha);

class LossScaler {
 public:
  explicit LossScaler(double initial = 65536, double growth = 2, double backoff = 0.5, int64_t interval = 2000);
  at::Tensor scale(const at::Tensor& loss) const;
  std::vector<at::Tensor> scale_all(const std::vector<at::Tensor>& losses) const;
  void unscale(const std::vector<at::Tensor>& grads) const;
  bool overflowed(const std::vector<at::Tensor>& grads) const;
  bool overflowed_any(const std::vector<at::Tensor>& grads) const;
  void update(bool overflow);
  double value() const { return scale_.item<double>(); }

 private:
  at::Tensor scale_;
  double growth_, backoff_;
  int64_t interval_, good_ = 0;
};

// Adam over host copies of the parameters; the GPU keeps half precision only.
class OffloadAdam {
 public:
  explicit OffloadAdam(std::vector<at::Tensor> params, double lr);
  void receive(size_t i, const at::Tensor& grad);
  void receive_overlapped(size_t i, const at::Tensor& grad);
  void step();
  void publish();
  void publish_half(std::vector<at::Tensor>& out);

 private:
  std::vector<at::Tensor> params_, master_, grad_, exp_avg_, exp_avg_sq_;
  double lr_;
  int64_t steps_ = 0;
};

} // namespace fused
