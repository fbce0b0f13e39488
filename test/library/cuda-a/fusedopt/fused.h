#pragma once

#include <torch/torch.h>

#include <map>
#include <vector>

namespace fusedopt {

using TensorList = std::vector<at::Tensor>;

void multi_tensor_scale(at::Tensor noop, TensorList in, TensorList out, double scale);
void multi_tensor_axpby(at::Tensor noop, TensorList x, TensorList y, TensorList out, double a, double b);
at::Tensor multi_tensor_l2norm(TensorList tensors);
at::Tensor multi_tensor_maxnorm(TensorList tensors);
void fused_sgd(at::Tensor param, at::Tensor grad, at::Tensor momentum, double lr, double weight_decay);
void fused_sgd_capturable(at::Tensor param, at::Tensor grad, at::Tensor momentum, const at::Tensor &lr);
void fused_adam(at::Tensor param, at::Tensor grad, at::Tensor exp_avg, at::Tensor exp_avg_sq, double lr, int64_t step);
void fused_adam_amsgrad(at::Tensor param, at::Tensor grad, at::Tensor exp_avg, at::Tensor exp_avg_sq, double lr,
                        int64_t step);
at::Tensor cast_copy(const at::Tensor &master);

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool clip = false;
  double max_norm = 1.0;
};

/// Adam over parameters on several devices; the parameters of one device are updated together.
class FusedAdam {
public:
  FusedAdam(TensorList params, AdamOptions options);

  void step();
  void unscale(double scale);
  bool overflowed() const;
  bool check_overflow() const;
  at::Tensor total_norm() const;
  at::Tensor total_norm_per_device() const;
  std::vector<double> learning_rates() const;
  void load_moments(const std::vector<std::vector<float>> &first);

private:
  struct Group {
    TensorList params, exp_avg, exp_avg_sq;
    at::Tensor found_inf;
  };
  AdamOptions options_;
  int64_t step_ = 0;
  std::map<int, Group> groups_;
};

} // namespace fusedopt
