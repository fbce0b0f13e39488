#include "StoreConnection.h"

#include <device_shim/Error.h>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <thread>

namespace device_shim::detail {
namespace {

using Clock = std::chrono::steady_clock;

// What openStore() needs to give up by itself, after which its own error says more.
constexpr auto kAfterOpening = std::chrono::seconds(2);

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

// Why this process cannot listen on a port: the errno, 0 when it can.
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

// Why a host has no address, "" when it has one.
std::string resolutionProblem(const std::string &host) {
  addrinfo *list = nullptr;
  const int problem = getaddrinfo(host.c_str(), nullptr, nullptr, &list);
  if (problem != 0)
    return gai_strerror(problem);
  freeaddrinfo(list);
  return "";
}

// Rank 0 listens and then connects to itself; c10d's errors do not say which of the two failed.
[[noreturn]] void throwServerProblem(const Endpoint &endpoint, const std::string &cause) {
  const std::string port = std::to_string(endpoint.port);
  if (const int problem = listenProblem(endpoint.port))
    throw InitError("rank 0 cannot listen on port " + port + " (" + std::strerror(problem) + "); " +
                    (problem == EADDRINUSE ? "another program uses it, perhaps an earlier run: " : "") +
                    "set MASTER_PORT to a free port, or let device-run or torchrun choose one");
  const auto unresolved = resolutionProblem(endpoint.address);
  throw InitError(
      "rank 0 listens on port " + port + ", but MASTER_ADDR='" + endpoint.address + "' " +
      (unresolved.empty() ? "does not lead to it (" + cause + ")" : "has no address (" + unresolved + ")") +
      "; set MASTER_ADDR to the name or the address of the machine of rank 0");
}

} // namespace

std::string secondsText(std::chrono::milliseconds time) {
  auto text = std::to_string(static_cast<double>(time.count()) / 1000);
  return text.substr(0, text.find('.') + 2) + " s";
}

c10::intrusive_ptr<c10d::Store> openStore(const Endpoint &endpoint, bool server, int rank,
                                          std::chrono::milliseconds timeout) {
  try {
    return c10::make_intrusive<c10d::TCPStore>(
        endpoint.address, compat::storeOptions(static_cast<uint16_t>(endpoint.port), server, timeout));
  } catch (const std::exception &error) {
    const std::string cause = firstLine(error.what());
    if (server)
      throwServerProblem(endpoint, cause);
    throw InitError("rank " + std::to_string(rank) + " could not reach rank 0 at " + endpoint.text() +
                    " within " + secondsText(timeout) + " (" + cause +
                    "); check that rank 0 was started, that MASTER_ADDR and "
                    "MASTER_PORT are the same on all ranks, and that no firewall is between them");
  }
}

FirstAnswer openAndCount(const Endpoint &endpoint, bool server, int rank, std::chrono::milliseconds timeout,
                         const std::string &key) {
  auto promise = std::make_shared<std::promise<FirstAnswer>>();
  auto answer = promise->get_future();
  // A thread that waits for an answer that never comes is left behind; it holds all it uses.
  std::thread([=] {
    try {
      FirstAnswer first{openStore(endpoint, server, rank, timeout)};
      first.count = first.store->add(key, 1);
      promise->set_value(std::move(first));
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (answer.wait_for(timeout + kAfterOpening) == std::future_status::timeout)
    throw InitError("rank " + std::to_string(rank) + " got no answer at " + endpoint.text() + " within " +
                    secondsText(timeout) +
                    ": another program listens there, or rank 0 is stopped; set MASTER_PORT to a free port, "
                    "the same on all ranks, or let device-run or torchrun choose one");
  return answer.get();
}

bool waitForCount(c10d::Store &store, const std::string &key, int size, std::chrono::milliseconds timeout,
                  const std::function<bool()> &giveUp) {
  const auto end = Clock::now() + timeout;
  while (store.add(key, 0) < size) {
    if (giveUp() || Clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

} // namespace device_shim::detail
