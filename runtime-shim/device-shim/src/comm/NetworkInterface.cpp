#include "comm/NetworkInterface.h"

#include <device_shim/Error.h>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>

namespace device_shim::detail {
namespace {

// Connecting a UDP socket sends nothing; it only makes the kernel choose the route.
std::string sourceAddress(const addrinfo &target) {
  const int handle = socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0)
    return "";
  std::string found;
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  char text[NI_MAXHOST];
  if (connect(handle, target.ai_addr, target.ai_addrlen) == 0 &&
      getsockname(handle, reinterpret_cast<sockaddr *>(&own), &length) == 0 &&
      getnameinfo(reinterpret_cast<sockaddr *>(&own), length, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) == 0)
    found = text;
  close(handle);
  return found;
}

} // namespace

std::string addressTowards(const std::string &host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo *list = nullptr;
  const int problem = getaddrinfo(host.c_str(), "9", &hints, &list);
  if (problem != 0)
    throw InitError("MASTER_ADDR='" + host + "' has no address: " + gai_strerror(problem));
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> targets(list, freeaddrinfo);
  for (const addrinfo *target = targets.get(); target; target = target->ai_next) {
    const auto found = sourceAddress(*target);
    if (!found.empty())
      return found;
  }
  throw InitError("there is no route to MASTER_ADDR='" + host + "'; check the network of this machine");
}

} // namespace device_shim::detail
