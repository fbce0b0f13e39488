//===- Isolation.h - faults on isolated memory ------------------*- C++ -*-===//
//
// What happens when host code touches isolated device memory.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace vcuda {

/// Installs the handler of invalid accesses where it is not the present one. Faults go on to the one that was
/// there.
void installFaultHandler();

} // namespace vcuda
