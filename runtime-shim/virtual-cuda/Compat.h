// Everything that differs between the LibTorch releases this library is built for lives here.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/api/include/torch/version.h>

namespace vcuda {

#if TORCH_VERSION_MAJOR == 1
inline constexpr const char *kMethodPrefix = "wrapper_";
inline constexpr const char *kRulesVersion = "1.13.1";
// 1.13 rejects a host pointer in from_blob(..., cuda) while it asks for the pointer's device.
inline constexpr bool kHostPointerIsAnError = true;
// torch.where moved 0-dim operands to the other operands' device only from 2.0 on.
inline constexpr bool kWhereMovesScalars = false;
#else
inline constexpr const char *kMethodPrefix = "wrapper_CUDA_";
inline constexpr const char *kRulesVersion = "2.6.0";
inline constexpr bool kHostPointerIsAnError = false;
inline constexpr bool kWhereMovesScalars = true;
#endif

} // namespace vcuda
