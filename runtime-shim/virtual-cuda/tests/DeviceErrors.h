// Devices, and "this throws that text": for the tests and for programs that run the rule table.
#pragma once

#include <torch/torch.h>
#include <torch/version.h>

#include <string>

namespace support {

inline const torch::Device cpu(torch::kCPU);
inline const torch::Device gpu0(torch::kCUDA, 0);
inline const torch::Device gpu1(torch::kCUDA, 1);

inline torch::TensorOptions on(const torch::Device &device) { return torch::TensorOptions().device(device); }

inline torch::TensorOptions leafOn(const torch::Device &device) { return on(device).requires_grad(true); }

// First line of what run() throws, or "" when it does not.
template <typename Run> std::string thrown(Run run) {
  try {
    run();
  } catch (const c10::Error &error) {
    std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

#if TORCH_VERSION_MAJOR == 1
inline constexpr bool isTorch1 = true;
#else
inline constexpr bool isTorch1 = false;
#endif

inline constexpr bool newAddcmul = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 7;

inline const std::string kSameDevice = "Expected all tensors to be on the same device, but ";
inline const std::string kTwoDevices = kSameDevice + "found at least two devices, ";

// The newest release says it in other words.
inline constexpr bool newWords = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10;

// What a strict check says when `argument` is on the second of two devices.
inline std::string strictError(const std::string &first, const std::string &second,
                               const std::string &argument, const std::string &method) {
  const std::string end = " in method " + std::string(isTorch1 ? "wrapper_" : "wrapper_CUDA_") + method + ")";
  if (newWords)
    return kSameDevice + "got " + argument + " is on " + second + ", different from other tensors on " +
           first + " (when checking argument" + end;
  return kTwoDevices + first + " and " + second + "! (when checking argument for argument " + argument + end;
}

} // namespace support
