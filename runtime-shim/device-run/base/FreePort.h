//===- FreePort.h - a TCP port for rank 0 to listen on ----------*- C++ -*-===//
//
// Chooses a port that no other device-run on this machine uses.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>

namespace devicerun {

/// Keeps a port for one job, from the constructor to the destructor.
///
/// Binding port 0 and releasing the port for rank 0 loses it to anybody in the seconds rank 0 needs to
/// start, and keeping it bound breaks programs that bind without SO_REUSEADDR. So the port comes from below
/// the system's own range for outgoing connections and for port 0 (/proc/sys/net/ipv4/ip_local_port_range),
/// is tried once with a bind, and is claimed among all device-runs of the machine by an abstract Unix socket,
/// which the kernel drops when the holder dies however it dies. What remains is a server of another program
/// that starts within those seconds with the same fixed port; the program then fails to bind.
class PortReservation {
public:
  /// Throws RunError(ExitLauncher) when no port can be had.
  PortReservation();
  ~PortReservation();
  PortReservation(const PortReservation &) = delete;
  PortReservation &operator=(const PortReservation &) = delete;

  int port() const { return number; }

private:
  int number = 0;
  int claim = -1;
};

} // namespace devicerun
