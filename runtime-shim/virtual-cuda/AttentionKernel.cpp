// torch.nn.functional.scaled_dot_product_attention. For devices that LibTorch has no fused kernel for it
// takes several operators, where a GPU and the CPU take one: here it takes the CPU's.
#include "Compat.h"
#include "Kernels.h"

#if TORCH_VERSION_MAJOR > 1
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

namespace vcuda {
namespace {

constexpr int64_t kFlashAttention = 1; // at::SDPBackend::flash_attention

bool isLike(const at::Tensor &tensor, const at::Tensor &query) {
  return tensor.layout() == at::kStrided && !tensor.is_nested() && tensor.device() == query.device() &&
         tensor.scalar_type() == query.scalar_type() && tensor.dim() == query.dim();
}

// A mask of truth values as one that is added, as LibTorch does.
at::Tensor addedMask(const at::Tensor &mask, const at::Tensor &query) {
  if (mask.scalar_type() != at::kBool)
    return mask;
  return at::zeros_like(mask, query.options())
      .masked_fill_(mask.logical_not(), -std::numeric_limits<double>::infinity());
}

at::Tensor attention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                     const std::optional<at::Tensor> &mask, double dropout, bool isCausal,
                     std::optional<double> scale, bool groups) {
  const bool plain =
      query.layout() == at::kStrided && !query.is_nested() && isLike(key, query) && isLike(value, query);
  const bool maskFits = !mask || !mask->defined() ||
                        (!isCausal && mask->device() == query.device() && !mask->requires_grad() &&
                         (mask->scalar_type() == at::kBool || mask->scalar_type() == query.scalar_type()));
  if (plain && maskFits && !groups) {
    std::optional<at::Tensor> added;
    if (mask && mask->defined())
      added = addedMask(*mask, query);
    if (at::_fused_sdp_choice(query, key, value, added, dropout, isCausal, scale) == kFlashAttention)
      return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout, isCausal,
                                                                         added, scale));
  }
  return at::native::scaled_dot_product_attention(query, key, value, mask, dropout, isCausal, scale, groups);
}

} // namespace

void registerAttention(torch::Library &library) {
  library.impl("scaled_dot_product_attention", TORCH_FN(attention));
}

} // namespace vcuda
#else
void vcuda::registerAttention(torch::Library &) {}
#endif
