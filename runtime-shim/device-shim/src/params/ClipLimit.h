//===- ClipLimit.h - the limit of gradient clipping -------------*- C++ -*-===//
//
// The norm that gradients are clipped to.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace device_shim::detail {

/// \throws UsageError for a limit below 0, which would reverse gradients, and for NaN, which would clip
/// nothing. \param user what is called, for the message.
void requireClipLimit(double maxNorm, const std::string &user);

} // namespace device_shim::detail
