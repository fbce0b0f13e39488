// Gradients that a program has taken out of the parameters, such as those of another loss. They stay what
// they are when the next ones come.
#include "ddp/GradientBuckets.h"

#include <ATen/ATen.h>

#include <utility>

namespace device_shim::detail {

bool GradientBuckets::isPart(const at::Tensor &gradient, const at::Tensor &view) {
  return gradient.defined() && gradient.data_ptr() == view.data_ptr() && gradient.sizes() == view.sizes() &&
         gradient.strides() == view.strides();
}

// Before the memory of `slot` is written over. What a program holds is the view itself, or others with its
// memory, of which nobody knows whose they are.
void GradientBuckets::spareKept(Slot &slot) {
  if (slot.view.use_count() > 1) {
    auto kept = std::exchange(slot.view, slot.view.variable_data());
    kept.set_data(kept.clone());
  }
  leaveToOthers(buckets[slot.bucket]);
}

// Whether more tensors share its memory than the views of its slots and the gradients of the parameters.
bool GradientBuckets::heldElsewhere(const Bucket &bucket) const {
  size_t tensors = bucket.slots.size() + (bucket.sent.is_same(bucket.flat) ? 1 : 2);
  for (const auto index : bucket.slots) {
    const auto &gradient = slots[index].parameter.grad();
    tensors += gradient.defined() && gradient.has_storage() && !gradient.is_same(slots[index].view) &&
               gradient.is_alias_of(bucket.flat);
  }
  return bucket.flat.storage().use_count() > tensors;
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
