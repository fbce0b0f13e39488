//===- StageCall.h - one run of a stage -------------------------*- C++ -*-===//
//
// One run of a stage within its hooks. For Stage and StageChain; programs do not use it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace device_shim {

class StageHooks;

namespace detail {

/// What a module writes into its arguments holds for the caller, too, as without hooks: tensors that it
/// assigns or appends to an argument it takes by reference, and what it writes in place into a tensor that
/// the hooks replaced by a copy on another device.
class StageCall {
public:
  /// Calls before_forward() for `inputs`, see StageHooks; what it throws leaves them as they were.
  /// \param byReference whether the module takes an argument by reference to non-const.
  StageCall(StageHooks &hooks, const std::vector<at::Tensor *> &inputs, bool byReference);

  /// After the module has run: after_forward() for `outputs`, the tensors in its result, and for what the
  /// module has put into `inputs`, the tensors in its arguments as they are now, or has written in place.
  /// \throws c10::Error where what was written in place cannot be written into the caller's tensor.
  void end(std::vector<at::Tensor *> outputs, const std::vector<at::Tensor *> &inputs);

  /// Puts the caller's tensors in the place of the hooks' copies of them, in arguments by reference.
  void restore(const std::vector<at::Tensor *> &inputs) const;

private:
  struct Input {
    at::Tensor original, given;
    std::optional<int64_t> version; ///< of `given` before the module ran; none for tensors of InferenceMode
    bool isWritten() const;
    bool isCopy() const;
  };
  void writeBack();

  StageHooks &hooks;
  std::vector<Input> all;
};

} // namespace detail
} // namespace device_shim
