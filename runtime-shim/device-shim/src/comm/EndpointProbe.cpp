#include "comm/EndpointProbe.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace device_shim::detail {
namespace {

struct FreeAddresses {
  void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// getaddrinfo()'s error, 0 when there is none.
int resolve(const std::string &host, const std::string &port, Addresses &found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *list = nullptr;
  const int problem = getaddrinfo(host.c_str(), port.empty() ? nullptr : port.c_str(), &hints, &list);
  found.reset(problem == 0 ? list : nullptr);
  return problem;
}

// The errno of a connection that does not come about, 0 for one that does.
int connectOnce(const addrinfo &to, std::chrono::milliseconds timeout) {
  const int handle = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (handle < 0)
    return errno;
  int problem = connect(handle, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (problem == EINPROGRESS) {
    pollfd ready{handle, POLLOUT, 0};
    socklen_t length = sizeof problem;
    if (poll(&ready, 1, static_cast<int>(timeout.count())) <= 0)
      problem = ETIMEDOUT;
    else
      getsockopt(handle, SOL_SOCKET, SO_ERROR, &problem, &length);
  }
  close(handle);
  return problem;
}

} // namespace

int listenProblem(int port) {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0)
    return errno;
  const int yes = 1;
  setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool listens =
      bind(handle, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 && listen(handle, 1) == 0;
  const int problem = listens ? 0 : errno;
  close(handle);
  return problem;
}

std::string resolutionProblem(const std::string &host) {
  Addresses found;
  const int problem = resolve(host, "", found);
  return problem == 0 ? "" : gai_strerror(problem);
}

std::string connectionProblem(const Endpoint &endpoint, std::chrono::milliseconds timeout) {
  Addresses found;
  if (const int problem = resolve(endpoint.address, std::to_string(endpoint.port), found))
    return gai_strerror(problem);
  int problem = EADDRNOTAVAIL;
  for (const addrinfo *each = found.get(); each && problem != 0; each = each->ai_next)
    problem = connectOnce(*each, timeout);
  return problem == 0 ? "" : std::strerror(problem);
}

} // namespace device_shim::detail
