//===- EndpointProbe.h - why an address cannot be used ----------*- C++ -*-===//
//
// Why an address and a port cannot be used: c10d's own errors do not tell a wrong name from a closed port,
// and from 2.4 on it tries again for longer than its timeout.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <string>

namespace device_shim::detail {

/// Where the store listens: MASTER_ADDR and MASTER_PORT.
struct Endpoint {
  std::string address;
  int port = 0;
  std::string text() const { return address + ":" + std::to_string(port); }
};

/// Why this process cannot listen on a port: the errno, 0 when it can.
int listenProblem(int port);

/// Why a host has no address, "" when it has one.
std::string resolutionProblem(const std::string &host);

/// Why no connection to `endpoint` comes about within `timeout` for each of its addresses, "" when one does.
std::string connectionProblem(const Endpoint &endpoint, std::chrono::milliseconds timeout);

} // namespace device_shim::detail
