// The list of torch.use_deterministic_algorithms' documentation; the names are those of PyTorch's own
// test/test_torch.py (test_nondeterministic_alert_*). Where the CPU's kernel refuses, too, it does so by
// itself.
#include "Determinism.h"

#include "Compat.h"

#include <ATen/Context.h>

namespace vcuda {
namespace {

// embedding_bag's number of the mode "max".
constexpr int64_t kMax = 2;

bool takesMaximum(const c10::FunctionSchema &schema, const c10::IValue *values) {
  const auto mode = schema.argumentIndexWithName("mode");
  return mode && values[*mode].isInt() && values[*mode].toInt() == kMax;
}

bool hasWeights(const c10::FunctionSchema &, const c10::IValue *values) {
  return values[1].isTensor() && values[1].toTensor().defined();
}

bool isFloating(const c10::FunctionSchema &, const c10::IValue *values) {
  return at::isFloatingType(values[0].toTensor().scalar_type());
}

bool givesIndices(const c10::FunctionSchema &schema, const c10::IValue *) {
  return schema.returns().size() == 2;
}

constexpr NonDeterministic kKnown[] = {
    {"aten::_adaptive_avg_pool2d_backward", "adaptive_avg_pool2d_backward_cuda", nullptr},
    {"aten::_adaptive_avg_pool3d_backward", "adaptive_avg_pool3d_backward_cuda", nullptr},
    {"aten::adaptive_max_pool2d_backward", "adaptive_max_pool2d_backward_cuda", nullptr},
    {"aten::avg_pool3d_backward", "avg_pool3d_backward_cuda", nullptr},
    {"aten::bincount", "_bincount_cuda", &hasWeights},
    {"aten::_ctc_loss_backward", "ctc_loss_backward_gpu", nullptr},
    {"aten::_embedding_bag_backward", "embedding_bag_backward_cuda_max", &takesMaximum},
    {"aten::_embedding_bag_dense_backward", "embedding_bag_backward_cuda_max", &takesMaximum},
    {"aten::fractional_max_pool2d_backward", "fractional_max_pool2d_backward_cuda", nullptr},
    {"aten::fractional_max_pool3d_backward", "fractional_max_pool3d_backward_cuda", nullptr},
    {"aten::grid_sampler_2d_backward", "grid_sampler_2d_backward_cuda", nullptr},
    {"aten::grid_sampler_3d_backward", "grid_sampler_3d_backward_cuda", nullptr},
    {"aten::histc", kHistogramName, &isFloating},
    {"aten::median", "median CUDA with indices output", &givesIndices},
    {"aten::nll_loss2d_forward", "nll_loss2d_forward_out_cuda_template", nullptr},
    {"aten::put_", "put_", nullptr},
    {"aten::reflection_pad1d_backward", "reflection_pad1d_backward_out_cuda", nullptr},
    {"aten::reflection_pad2d_backward", "reflection_pad2d_backward_cuda", nullptr},
    {"aten::reflection_pad3d_backward", "reflection_pad3d_backward_out_cuda", nullptr},
    {"aten::replication_pad1d_backward", "replication_pad1d_backward_cuda", nullptr},
    {"aten::replication_pad2d_backward", "replication_pad2d_backward_cuda", nullptr},
    {"aten::replication_pad3d_backward", "replication_pad3d_backward_cuda", nullptr},
    {"aten::upsample_bicubic2d_backward", "upsample_bicubic2d_backward_out_cuda", nullptr},
    {"aten::upsample_bilinear2d_backward", "upsample_bilinear2d_backward_out_cuda", nullptr},
    {"aten::upsample_linear1d_backward", "upsample_linear1d_backward_out_cuda", nullptr},
    {"aten::upsample_trilinear3d_backward", "upsample_trilinear3d_backward_out_cuda", nullptr},
};

} // namespace

const NonDeterministic *nonDeterministic(const c10::FunctionSchema &schema) {
  for (const NonDeterministic &each : kKnown)
    if (schema.name() == each.op)
      return &each;
  return nullptr;
}

void alertIfNotDeterministic(const NonDeterministic &known, const c10::FunctionSchema &schema,
                             const c10::IValue *values) {
  if (at::globalContext().deterministicAlgorithms() && (!known.holds || known.holds(schema, values)))
    at::globalContext().alertNotDeterministic(known.name);
}

} // namespace vcuda
