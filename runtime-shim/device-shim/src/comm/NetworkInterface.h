//===- NetworkInterface.h - the address towards another machine -*- C++ -*-===//
//
// Through which of its addresses this machine reaches another.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace device_shim::detail {

/// The local address from which `host` is reached, in numbers. On Debian a machine's own name often means
/// 127.0.1.1, which no other machine can connect to, so the name is not asked.
/// \throws InitError when `host` has no address or there is no route to it.
std::string addressTowards(const std::string &host);

} // namespace device_shim::detail
