#include "autograd/UnlinkedGradient.h"

#include "autograd/NodePointer.h"

#include <device_shim/Error.h>

#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace device_shim::detail {
namespace {

namespace autograd = torch::autograd;

class Refusal final : public autograd::Node {
public:
  explicit Refusal(std::string ofMessage) : message(std::move(ofMessage)) {}

private:
  autograd::variable_list apply(autograd::variable_list &&) override { throw UsageError(message); }

  std::string message;
};

} // namespace

at::Tensor unlinkedGradient(const at::Tensor &average, const std::string &parameter, const char *wrapper) {
  auto gradient = average.variable_data();
  auto refusal = makeNode<Refusal>(
      "a loss uses the gradient of parameter " + parameter + " that a backward pass with create_graph=true " +
      "left, but " + wrapper +
      " has averaged it since, which leaves no graph; for a penalty on gradients by " +
      "the inputs call torch::autograd::grad() with create_graph=true and these inputs, or take " +
      "grad().detach() where nothing has to be learnt through it");
  const auto number = refusal->add_input_metadata(gradient);
  autograd::impl::set_gradient_edge(gradient, {std::move(refusal), number});
  return gradient;
}

} // namespace device_shim::detail
