// Records of the device errors this process raises, for the launcher.
#pragma once

#include <string>

namespace vcuda {

// errorClass: out-of-memory, invalid-ordinal or host-access. Does nothing when no records are asked for.
void recordError(const char *errorClass, const std::string &text);

// An error that LibTorch raises: recorded when it says that tensors are on different devices.
void recordIfMixedDevices(const std::string &text);

} // namespace vcuda
