#include "base/FreePort.h"

#include "base/RunError.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace devicerun {
namespace {

constexpr int kLowest = 10000;
constexpr int kTorchDefault = 29500; // programs started by hand use it

struct PortRange {
  int first;
  int last;
};

PortRange portsToTry() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int low = 32768, high = 60999;
  if (!(file >> low >> high))
    low = 32768;
  // With the system's range starting low there is no room below it; then its ports have to do.
  return low - kLowest >= 1000 ? PortRange{kLowest, low - 1} : PortRange{kLowest, 60999};
}

// Bound on the dual-stack wildcard where there is IPv6, as c10d listens.
bool canBind(int port) {
  int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (six >= 0) {
    int off = 0;
    setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons(static_cast<in_port_t>(port));
    int result = bind(six, reinterpret_cast<const sockaddr *>(&address), sizeof address);
    int error = errno;
    close(six);
    if (result == 0)
      return true;
    if (error == EADDRINUSE)
      return false;
  }
  int four = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (four < 0)
    return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<in_port_t>(port));
  bool bound = bind(four, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
  close(four);
  return bound;
}

/// The socket that claims `port`, or -1 when another device-run has it.
int claimPort(int port) {
  int claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (claim < 0)
    throw RunError(ExitLauncher, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A name that starts with a zero byte is abstract: no file is left behind.
  std::string name = fmt::format("device-run-port-{}", port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(claim, reinterpret_cast<const sockaddr *>(&address), length) == 0)
    return claim;
  close(claim);
  return -1;
}

} // namespace

PortReservation::PortReservation() {
  PortRange range = portsToTry();
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<int> pick(range.first, range.last);
  for (int attempt = 0; attempt < 500; ++attempt) {
    int port = pick(random);
    if (port == kTorchDefault)
      continue;
    int held = claimPort(port);
    if (held < 0)
      continue;
    if (canBind(port)) {
      number = port;
      claim = held;
      return;
    }
    close(held);
  }
  throw RunError(ExitLauncher,
                 fmt::format("found no free TCP port between {} and {}; name one with --master-port",
                             range.first, range.last));
}

PortReservation::~PortReservation() {
  if (claim >= 0)
    close(claim);
}

} // namespace devicerun
