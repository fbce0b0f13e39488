#include "autograd/GradientHook.h"

#include <device_shim/Error.h>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace device_shim::detail {

namespace autograd = torch::autograd;

GradientHook::GradientHook(at::Tensor ofParameter, std::string itsName, const char *ofWrapper,
                           std::function<void()> whenReady, const std::function<void()> &coming)
    : parameter(std::move(ofParameter)), name(std::move(itsName)), wrapper(ofWrapper),
      ready(std::move(whenReady)) {
  attach();
  // This one belongs to the parameter, so that another accumulator calls it, too.
  before = parameter.register_hook([this, coming](const at::Tensor &) {
    refuseOther();
    if (coming)
      coming();
  });
}

GradientHook::~GradientHook() {
  accumulator->del_post_hook(after);
  parameter.remove_hook(before);
}

void GradientHook::attach() {
  accumulator = autograd::impl::grad_accumulator(parameter);
  after = accumulator->add_post_hook(std::make_unique<autograd::utils::LambdaPostHook>(
      [this](const autograd::variable_list &outputs, const autograd::variable_list &) {
        ready();
        return outputs;
      }));
}

bool GradientHook::lost() const {
  return parameter.requires_grad() && autograd::impl::try_get_grad_accumulator(parameter) != accumulator;
}

void GradientHook::renew() {
  accumulator->del_post_hook(after);
  attach();
}

// A graph from before the change has the old accumulator, while there is no new one.
void GradientHook::refuseOther() const {
  const auto current = autograd::impl::try_get_grad_accumulator(parameter);
  if (current && current != accumulator)
    throw UsageError("parameter " + name + " was replaced after " + wrapper +
                     " was made, as torch::load() and Module::to() do, and the ranks would not exchange its "
                     "gradient; call forward() of the wrapper, not that of the module, after such a change");
}

} // namespace device_shim::detail
