// One operator of every family of the rule table, and what has to happen for each placement of its operands.
//
// The expectations are written down here by hand, from PyTorch's sources, not read from the table: a wrong
// rule in the table shows, on virtual GPUs as on real ones.
#pragma once

#include "DeviceErrors.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace opcases {

using support::isTorch1;
using Tensors = std::vector<torch::Tensor>;
using torch::indexing::Slice;

// What happens when the operand named by the column is moved away from cuda:0.
//   y    runs                       n    throws a device error
enum class Expect { Runs, Throws };
inline constexpr Expect y = Expect::Runs, n = Expect::Throws;

// An operator and its tensors, the first being `self`.
struct Case {
  const char *name;
  std::function<Tensors()> make; // on the CPU
  std::function<void(Tensors &)> run;
  // Per operand: moved to the CPU, and moved to cuda:1.
  std::vector<Expect> toCpu, toOther;
  // Per operand: 0-dim on the CPU; empty when the operator takes no 0-dim tensors there.
  std::vector<Expect> scalar;
};

inline torch::Tensor vec() { return torch::full({3}, 0.5); }
inline torch::Tensor mat() { return torch::full({3, 3}, 0.5); }
inline torch::Tensor idx() { return torch::zeros({3}, torch::kLong); }
inline torch::Tensor mask() { return torch::ones({3}, torch::kBool); }
inline constexpr Expect lerpScalar = isTorch1 ? n : y;
inline constexpr Expect addcmulScalar = support::newAddcmul ? y : n;
inline constexpr Expect whereScalar = isTorch1 ? n : y;

inline const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
      // TensorIterator operators that take one 0-dim CPU tensor, which is never the output.
      {"add", [] { return Tensors{vec(), vec()}; }, [](Tensors &t) { t[0] + t[1]; }, {n, n}, {n, n}, {y, y}},
      {"add_",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].add_(t[1]); },
       {n, n},
       {n, n},
       {n, y}},
      {"add.out",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::add_out(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, y, y}},
      {"mul", [] { return Tensors{vec(), vec()}; }, [](Tensors &t) { t[0] * t[1]; }, {n, n}, {n, n}, {y, y}},
      {"div", [] { return Tensors{vec(), vec()}; }, [](Tensors &t) { t[0] / t[1]; }, {n, n}, {n, n}, {y, y}},
      {"pow",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].pow(t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"atan2",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::atan2(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"fmod",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::fmod(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"remainder",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::remainder(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"maximum",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::maximum(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"eq",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { (void)(t[0] == t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"lt_",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].lt_(t[1]); },
       {n, n},
       {n, n},
       {n, y}},
      // Composed: makes its output where self is, and an output is never the exception.
      {"logical_and",
       [] { return Tensors{mask(), mask()}; },
       [](Tensors &t) { torch::logical_and(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, y}},
      {"bitwise_xor",
       [] { return Tensors{idx(), idx()}; },
       [](Tensors &t) { torch::bitwise_xor(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"mse_loss",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::mse_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"smooth_l1_loss",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::smooth_l1_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"isclose",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::isclose(t[0], t[1]); },
       {n, n},
       {n, n},
       {y, y}},
      {"lerp.Tensor",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::lerp(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, lerpScalar}},
      // TensorIterator operators that take none.
      {"addcmul",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::addcmul(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, addcmulScalar}},
      {"addcdiv_",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { t[0].addcdiv_(t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"exp.out",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::exp_out(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"sum.out",
       [] { return Tensors{vec(), mat()}; },
       [](Tensors &t) { torch::sum_out(t[0], t[1], {0}); },
       {n, n},
       {n, n},
       {}},
      {"where",
       [] { return Tensors{mask(), vec(), vec()}; },
       [](Tensors &t) { torch::where(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {whereScalar, whereScalar, whereScalar}},
      {"binary_cross_entropy",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::binary_cross_entropy(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      // Strict operators: the generated check knows no exception.
      {"cat",
       [] { return Tensors{vec(), vec(), vec()}; },
       [](Tensors &t) { torch::cat({t[0], t[1], t[2]}); },
       {n, n, n},
       {n, n, n},
       {}},
      {"stack",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::stack({t[0], t[1]}); },
       {n, n},
       {n, n},
       {}},
      {"mm", [] { return Tensors{mat(), mat()}; }, [](Tensors &t) { t[0].mm(t[1]); }, {n, n}, {n, n}, {n, n}},
      {"bmm",
       [] { return Tensors{torch::ones({2, 3, 3}), torch::ones({2, 3, 3})}; },
       [](Tensors &t) { t[0].bmm(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"addmm",
       [] { return Tensors{mat(), mat(), mat()}; },
       [](Tensors &t) { torch::addmm(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"matmul",
       [] { return Tensors{mat(), vec()}; },
       [](Tensors &t) { t[0].matmul(t[1]); },
       {n, n},
       {n, n},
       {}},
      {"dot",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].dot(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"linear",
       [] { return Tensors{mat(), mat(), vec()}; },
       [](Tensors &t) { torch::linear(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"index_select",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].index_select(0, t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"gather",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].gather(0, t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"scatter_add_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].scatter_add_(0, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"index_add_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].index_add_(0, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"index_copy_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].index_copy_(0, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {n, n, n}},
      {"take",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].take(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"masked_select",
       [] { return Tensors{vec(), mask()}; },
       [](Tensors &t) { t[0].masked_select(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"masked_scatter_",
       [] { return Tensors{vec(), mask(), vec()}; },
       [](Tensors &t) { t[0].masked_scatter_(t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"embedding",
       [] { return Tensors{mat(), idx()}; },
       [](Tensors &t) { torch::embedding(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      {"nll_loss",
       [] { return Tensors{mat(), idx(), vec()}; },
       [](Tensors &t) { torch::nll_loss(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"cross_entropy",
       [] { return Tensors{mat(), idx()}; },
       [](Tensors &t) { torch::cross_entropy_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      {"huber_loss",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::huber_loss(t[0], t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"layer_norm",
       [] { return Tensors{mat(), vec(), vec()}; },
       [](Tensors &t) { torch::layer_norm(t[0], {3}, t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      {"batch_norm",
       [] { return Tensors{mat(), vec(), vec(), vec(), vec()}; },
       [](Tensors &t) { torch::batch_norm(t[0], t[1], t[2], t[3], t[4], true, 0.1, 1e-5, false); },
       {n, n, n, n, n},
       {n, n, n, n, n},
       {}},
      {"searchsorted",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::searchsorted(t[0], t[1]); },
       {n, n},
       {n, n},
       {}},
      {"equal",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].equal(t[1]); },
       {n, n},
       {n, n},
       {n, n}},
      {"conv2d",
       [] { return Tensors{torch::ones({1, 2, 4, 4}), torch::ones({3, 2, 3, 3}), torch::ones({3})}; },
       [](Tensors &t) { torch::conv2d(t[0], t[1], t[2]); },
       {n, n, n},
       {n, n, n},
       {}},
      // Families of their own.
      {"index.Tensor",
       [] { return Tensors{vec(), idx()}; },
       [](Tensors &t) { t[0].index({t[1]}); },
       {n, y},
       {n, n},
       {}},
      {"index_put_",
       [] { return Tensors{vec(), idx(), vec()}; },
       [](Tensors &t) { t[0].index_put_({t[1]}, t[2]); },
       {n, y, n},
       {n, y, n},
       {}},
      {"masked_fill",
       [] { return Tensors{vec(), mask()}; },
       [](Tensors &t) { t[0].masked_fill(t[1], 1.0); },
       {n, n},
       {n, n},
       {}},
      {"masked_fill_.Tensor",
       [] { return Tensors{vec(), mask(), torch::scalar_tensor(2)}; },
       [](Tensors &t) { t[0].masked_fill_(t[1], t[2]); },
       {n, n, y},
       {n, n, y},
       {}},
      {"copy_",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].copy_(t[1]); },
       {y, y},
       {y, y},
       {}},
      {"fill_.Tensor",
       [] { return Tensors{vec(), torch::scalar_tensor(2)}; },
       [](Tensors &t) { t[0].fill_(t[1]); },
       {y, y},
       {y, y},
       {}},
      {"t[i] = x",
       [] { return Tensors{mat(), vec()}; },
       [](Tensors &t) { t[0][1] = t[1]; },
       {y, y},
       {y, y},
       {}},
      {"index({Slice}) = x",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { t[0].index({Slice()}) = t[1]; },
       {y, y},
       {y, y},
       {}},
      {"_foreach_add",
       [] { return Tensors{vec(), vec()}; },
       [](Tensors &t) { torch::_foreach_add(Tensors{t[0]}, Tensors{t[1]}); },
       {n, n},
       {n, n},
       {}},
  };
  return all;
}

inline Tensors onFirst(const Case &op) {
  Tensors tensors = op.make();
  for (torch::Tensor &tensor : tensors)
    tensor = tensor.to(support::gpu0);
  return tensors;
}

inline Tensors movedTo(Tensors tensors, size_t operand, torch::Device device) {
  tensors[operand] = tensors[operand].to(device);
  return tensors;
}

/// Whether a text is that of a check of devices, in any of the forms that operators have for it. Errors of
/// CUDA itself speak of devices, too: "CUDA error: device-side assert triggered".
inline bool isDeviceError(const std::string &text) {
  static const char *const forms[] = {
      "same device",                  // "Expected all tensors to be on the ..." and what single operators say
      "different device",             // equal(), parameters_to_vector()
      "too many CPU scalars",         // TensorIterator
      "CPU Scalar support for ",      // addcmul()
      "expected device ",             // index_put_(), gradients
      "of device type ",              // "Expected object of device type cuda but got device type cpu"
      "device type for generator",    // random numbers
      "does not match device of",     // from_blob()
      "but expected it to be on GPU", // operators from before the rules
      "to be on cpu",                 // tensor_split()
      "is_cuda() INTERNAL ASSERT",    // kernels that refuse what TensorIterator lets pass
      "Expected out tensor to have",  // structured operators
      "with non-CUDA DeviceType",     // a CPU self beside a GPU output
      "self.device() == out.device()", // min.out, max.out
      "1D CPU int64 tensor",           // pack_padded_sequence()
  };
  const auto has = [&](const char *part) { return text.find(part) != std::string::npos; };
  if (has("CUDA error"))
    return false;
  // Convolutions compare types, which name the kind of device.
  return std::any_of(std::begin(forms), std::end(forms), has) ||
         (has("Input type") && has("should be the same"));
}

/// A 0-dim tensor of another GPU never joins; where() of 2.x moves all but the first.
inline bool movesForeignScalar(const Case &op, size_t operand) {
  return !support::isTorch1 && operand > 0 && op.name == std::string("where");
}

} // namespace opcases
