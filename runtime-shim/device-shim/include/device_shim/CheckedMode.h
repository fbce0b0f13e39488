//===- CheckedMode.h - finds the operator in which devices meet -*- C++ -*-===//
//
// Finding the operator in which devices meet.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace device_shim {

/// While it lives, operators of this thread, and of backward passes started from it, whose tensors are on
/// different devices are written down, with the devices and shapes of their operands. Modes of other threads
/// are apart; of modes within one another each has what happens while it lives. It is meant for debugging:
/// every operator call becomes slower. Source: LibTorch's at::RecordFunction, ATen/record_function.h.
class CheckedMode {
public:
  /// Begins with this thread's next operator. A mode ends on the thread that made it, before the modes that
  /// were there when it was made.
  CheckedMode();
  ~CheckedMode();
  CheckedMode(const CheckedMode &) = delete;
  CheckedMode &operator=(const CheckedMode &) = delete;

  struct Call {
    std::string op;       ///< such as "aten::addmm"
    std::string operands; ///< such as "cuda:0 [8, 4], cpu [4, 3]"
    bool copies = false;  ///< moving data between devices is its purpose
  };
  static constexpr std::size_t most = 1000;
  /// In the order of the calls; the first `most` are kept.
  std::vector<Call> mixed_calls() const;
  /// The last one that is not a copy, as a sentence; empty when there is none.
  std::string last_mixed_call() const;
  /// The same, where tensors of no dimensions on the CPU count, too: most operators accept them with
  /// others, and those that do not, such as addcdiv, say that devices differ.
  std::string last_call_over_devices() const;
  /// The one among these that ended with an exception, where no operator has run since that; for an exception
  /// that is on its way. Of calls within one another the innermost; empty when there is none.
  std::string failed_call() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

namespace detail {
[[noreturn]] void rethrowExplained(const CheckedMode &mode, const std::string &where);
}

/// Runs `body` in checked mode and returns what it returns; what it throws passes through.
/// \throws DeviceError in place of a c10::Error about devices that an operator on tensors of several devices
/// threw: it names `where`, the operator and its operands.
template <typename Body> auto checked(const std::string &where, Body &&body) -> std::invoke_result_t<Body> {
  CheckedMode mode;
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    detail::rethrowExplained(mode, where);
  }
}

} // namespace device_shim
