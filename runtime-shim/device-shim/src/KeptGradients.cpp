// Gradients that a program has taken out of the parameters, such as those of another loss. They stay what
// they are: the bucket whose memory they share leaves it to them.
#include "GradientBuckets.h"

#include <ATen/ATen.h>

#include <utility>

namespace device_shim::detail {

bool GradientBuckets::isPart(const at::Tensor &gradient, const at::Tensor &view) {
  return gradient.defined() && gradient.data_ptr() == view.data_ptr() && gradient.sizes() == view.sizes() &&
         gradient.strides() == view.strides();
}

// Whether more tensors share its memory than the views of its slots and the gradients of the parameters:
// those that a program has kept.
bool GradientBuckets::heldElsewhere(const Bucket &bucket) const {
  const auto &memory = bucket.flat.storage();
  size_t tensors = 1 + bucket.slots.size();
  for (const auto index : bucket.slots) {
    const auto &slot = slots[index];
    const auto &gradient = slot.parameter.grad();
    const bool isView = gradient.is_same(slot.view);
    if (slot.view.use_count() > size_t(isView ? 2 : 1))
      return true;
    tensors += !isView && gradient.defined() && gradient.has_storage() && gradient.is_alias_of(bucket.flat);
  }
  return memory.use_count() > tensors;
}

// Once in a backward pass, before the first gradient is written over.
void GradientBuckets::leaveToOthers(Bucket &bucket) {
  if (std::exchange(bucket.checked, true) || !heldElsewhere(bucket))
    return;
  std::vector<at::Tensor> before;
  for (const auto index : bucket.slots)
    before.push_back(slots[index].view);
  allocate(bucket);
  for (size_t i = 0; i < before.size(); ++i) {
    auto &slot = slots[bucket.slots[i]];
    auto &gradient = slot.parameter.mutable_grad();
    if (!slot.ready || !isPart(gradient, before[i]))
      continue;
    slot.view.copy_(before[i]);
    gradient = slot.view;
  }
}

} // namespace device_shim::detail
