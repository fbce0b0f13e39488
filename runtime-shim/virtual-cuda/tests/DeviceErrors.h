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

// The end of a strict check's text: " (when checking argument for argument mat2 in method wrapper_mm)".
inline std::string inMethod(const std::string &argument, const std::string &method) {
  return " (when checking argument for argument " + argument + " in method " +
         (isTorch1 ? "wrapper_" : "wrapper_CUDA_") + method + ")";
}

inline const std::string kTwoDevices =
    "Expected all tensors to be on the same device, but found at least two devices, ";

} // namespace support
