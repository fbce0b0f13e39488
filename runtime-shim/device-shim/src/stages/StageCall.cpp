#include <device_shim/StageCall.h>

#include <device_shim/Stage.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace device_shim::detail {
namespace {

std::optional<int64_t> versionOf(const at::Tensor &tensor) {
  if (!tensor.defined() || tensor.is_inference())
    return std::nullopt;
  return tensor._version();
}

// Whether someone besides the one variable that holds it can read it.
bool isShared(const at::Tensor &tensor) {
  return tensor.use_count() > 1 || !tensor.has_storage() || tensor.storage().use_count() > 1;
}

} // namespace

bool StageCall::Input::isWritten() const { return version && given._version() != *version; }

bool StageCall::Input::isCopy() const {
  return original.defined() && given.defined() && original.device() != given.device() &&
         original.scalar_type() == given.scalar_type() && original.sizes() == given.sizes();
}

StageCall::StageCall(StageHooks &ofStage, const std::vector<at::Tensor *> &inputs, bool byReference)
    : hooks(ofStage) {
  std::vector<at::Tensor> originals;
  for (const auto *input : inputs)
    originals.push_back(*input);
  try {
    hooks.before_forward(inputs);
  } catch (...) {
    for (size_t i = 0; i < inputs.size(); ++i)
      *inputs[i] = originals[i];
    throw;
  }
  // Others are not kept, so that their memory ends as early as without hooks.
  for (size_t i = 0; i < inputs.size(); ++i) {
    Input input{std::move(originals[i]), *inputs[i], versionOf(*inputs[i])};
    if (byReference || at::GradMode::is_enabled() || (input.isCopy() && isShared(input.original)))
      all.push_back(std::move(input));
  }
}

// A leaf that requires a gradient could not have been written in place on its own device either.
void StageCall::writeBack() {
  for (auto &input : all)
    if (input.isCopy() && input.isWritten() &&
        !(at::GradMode::is_enabled() && input.original.is_leaf() && input.original.requires_grad()))
      input.original.copy_(input.given);
}

void StageCall::end(std::vector<at::Tensor *> outputs, const std::vector<at::Tensor *> &inputs) {
  writeBack();
  const auto isOutput = [&outputs](const at::Tensor &tensor) {
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const at::Tensor *output) { return output->is_same(tensor); });
  };
  for (auto &input : all)
    if (input.isWritten() && !input.given.is_leaf() && !isOutput(input.given))
      outputs.push_back(&input.given);
  for (auto *tensor : inputs) {
    const bool wasGiven =
        std::any_of(all.begin(), all.end(), [&](const Input &input) { return input.given.is_same(*tensor); });
    if (!wasGiven && tensor->defined() && !isOutput(*tensor))
      outputs.push_back(tensor);
  }
  hooks.after_forward(outputs);
}

void StageCall::restore(const std::vector<at::Tensor *> &inputs) const {
  for (auto *tensor : inputs)
    for (const auto &input : all)
      if (tensor->defined() && tensor->is_same(input.given)) {
        *tensor = input.original;
        break;
      }
}

} // namespace device_shim::detail
