// Batch normalization over several processes (torch.nn.SyncBatchNorm): operators that only GPUs have.
#include "Compat.h"
#include "Kernels.h"

#include <ATen/ATen.h>
#include <ATen/core/op_registration/adaption.h>

#include <string>
#include <utility>
#include <vector>

namespace vcuda {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

// All dimensions but that of the channels.
std::vector<int64_t> reducedDimensions(const at::Tensor &input) {
  std::vector<int64_t> dimensions{0};
  for (int64_t i = 2; i < input.dim(); ++i)
    dimensions.push_back(i);
  return dimensions;
}

// One value per channel, to be used with `input`.
at::Tensor perChannel(const at::Tensor &values, const at::Tensor &input) {
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = values.numel();
  return values.to(at::kFloat).view(sizes);
}

bool isGiven(const OptionalTensor &tensor) { return tensor && tensor->defined(); }

using Named = std::pair<const char *, OptionalTensor>;

// What the dispatcher checks for kernels of CUDA before they run.
void checkDevices(const std::string &op, const std::vector<Named> &arguments) {
  const std::string method = std::string(kMethodPrefix) + "_" + op;
  c10::optional<c10::Device> common;
  for (const auto &[name, tensor] : arguments)
    c10::impl::check_and_update_common_device(common, tensor, method.c_str(), name);
}

std::tuple<at::Tensor, at::Tensor> stats(const at::Tensor &input, double eps) {
  const at::Tensor values = input.to(at::kFloat);
  const auto dimensions = reducedDimensions(input);
  const at::Tensor mean = values.mean(dimensions);
  const at::Tensor variance = (values - perChannel(mean, input)).square().mean(dimensions);
  return {mean, (variance + eps).rsqrt()};
}

at::Tensor elemt(const at::Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias,
                 const at::Tensor &mean, const at::Tensor &invstd, double /*eps*/) {
  checkDevices("batch_norm_elemt",
               {{"input", input}, {"weight", weight}, {"bias", bias}, {"mean", mean}, {"invstd", invstd}});
  at::Tensor output = (input.to(at::kFloat) - perChannel(mean, input)) * perChannel(invstd, input);
  if (isGiven(weight))
    output = output * perChannel(*weight, input);
  if (isGiven(bias))
    output = output + perChannel(*bias, input);
  return output.to(input.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> gatherStats(const at::Tensor &input, const at::Tensor &means,
                                               const at::Tensor &invstds, const OptionalTensor &runningMean,
                                               const OptionalTensor &runningVariance, double momentum,
                                               double eps, const at::Tensor &counts) {
  checkDevices("batch_norm_gather_stats_with_counts", {{"input", input},
                                                       {"mean", means},
                                                       {"invstd", invstds},
                                                       {"running_mean", runningMean},
                                                       {"running_var", runningVariance},
                                                       {"counts", counts}});
  const at::Tensor shares = counts.to(at::kFloat).view({-1, 1});
  const at::Tensor total = shares.sum();
  const at::Tensor mean = (means * shares).sum(0) / total;
  const at::Tensor variances = invstds.pow(-2) - eps;
  const at::Tensor variance = ((variances + (means - mean).square()) * shares).sum(0) / total;
  if (isGiven(runningMean))
    runningMean->mul_(1 - momentum).add_(mean, momentum);
  if (isGiven(runningVariance))
    runningVariance->mul_(1 - momentum).add_(variance * total / (total - 1), momentum);
  return {mean, (variance + eps).rsqrt()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
backwardReduce(const at::Tensor &gradient, const at::Tensor &input, const at::Tensor &mean,
               const at::Tensor &invstd, const OptionalTensor &weight, bool ofInput, bool ofWeight,
               bool ofBias) {
  checkDevices(
      "batch_norm_backward_reduce",
      {{"grad_out", gradient}, {"input", input}, {"mean", mean}, {"invstd", invstd}, {"weight", weight}});
  const auto dimensions = reducedDimensions(input);
  const at::Tensor dy = gradient.to(at::kFloat);
  const at::Tensor sum = dy.sum(dimensions);
  const at::Tensor projected = (dy * (input.to(at::kFloat) - perChannel(mean, input))).sum(dimensions);
  return {ofInput ? sum : at::Tensor(), ofInput ? projected : at::Tensor(),
          ofWeight ? projected * invstd : at::Tensor(), ofBias ? sum : at::Tensor()};
}

at::Tensor backwardElemt(const at::Tensor &gradient, const at::Tensor &input, const at::Tensor &mean,
                         const at::Tensor &invstd, const OptionalTensor &weight, const at::Tensor &sum,
                         const at::Tensor &projected, const at::Tensor &count) {
  checkDevices("batch_norm_backward_elemt", {{"grad_out", gradient},
                                             {"input", input},
                                             {"mean", mean},
                                             {"invstd", invstd},
                                             {"weight", weight},
                                             {"sum_dy", sum},
                                             {"sum_dy_xmu", projected},
                                             {"count", count}});
  const at::Tensor total = count.sum();
  const at::Tensor centred = input.to(at::kFloat) - perChannel(mean, input);
  const at::Tensor slope = projected / total * invstd.square();
  at::Tensor result =
      gradient.to(at::kFloat) - perChannel(sum / total, input) - centred * perChannel(slope, input);
  result = result * perChannel(invstd, input);
  if (isGiven(weight))
    result = result * perChannel(*weight, input);
  return result.to(input.scalar_type());
}

} // namespace

void registerSyncBatchNorm(torch::Library &library) {
  library.impl("batch_norm_stats", TORCH_FN(stats));
  library.impl("batch_norm_elemt", TORCH_FN(elemt));
  library.impl("batch_norm_gather_stats_with_counts", TORCH_FN(gatherStats));
  library.impl("batch_norm_backward_reduce", TORCH_FN(backwardReduce));
  library.impl("batch_norm_backward_elemt", TORCH_FN(backwardElemt));
}

} // namespace vcuda
