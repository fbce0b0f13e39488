#include "comm/StoreConnection.h"

#include <device_shim/Error.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <thread>

namespace device_shim::detail {
namespace {

using Clock = std::chrono::steady_clock;

// What openStore() needs to give up by itself, after which its own error says more.
constexpr auto kAfterOpening = std::chrono::seconds(2);
// A connection within a data centre takes milliseconds.
constexpr auto kProbe = std::chrono::seconds(2);

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

// Rank 0 listens and then connects to itself.
[[noreturn]] void throwCannotListen(const Endpoint &endpoint, int problem) {
  throw InitError("rank 0 cannot listen on port " + std::to_string(endpoint.port) + " (" +
                  std::strerror(problem) + "); " +
                  (problem == EADDRINUSE ? "another program uses it, perhaps an earlier run: " : "") +
                  "set MASTER_PORT to a free port, or let device-run or torchrun choose one");
}

[[noreturn]] void throwServerUnreachable(const Endpoint &endpoint, const std::string &cause) {
  const std::string port = std::to_string(endpoint.port);
  throw InitError("rank 0 listens on port " + port + ", but MASTER_ADDR='" + endpoint.address +
                  "' does not lead to it (" + cause +
                  "); set MASTER_ADDR to the name or the address of the machine of rank 0");
}

[[noreturn]] void throwUnreachable(const Endpoint &endpoint, int rank, std::chrono::milliseconds timeout,
                                   const std::string &cause) {
  throw InitError("rank " + std::to_string(rank) + " could not reach rank 0 at " + endpoint.text() +
                  " within " + secondsText(timeout) + " (" + cause +
                  "); check that rank 0 was started, that MASTER_ADDR and MASTER_PORT are the same on all "
                  "ranks, and that no firewall is between them");
}

// For a time limit that openStore() does not keep: is there no server, or one that does not answer?
[[noreturn]] void throwNoAnswer(const Endpoint &endpoint, bool server, int rank,
                                std::chrono::milliseconds timeout) {
  const auto cause = connectionProblem(endpoint, kProbe);
  if (!cause.empty() && server)
    throwServerUnreachable(endpoint, cause);
  if (!cause.empty())
    throwUnreachable(endpoint, rank, timeout, cause);
  throw InitError("rank " + std::to_string(rank) + " got no answer at " + endpoint.text() + " within " +
                  secondsText(timeout) +
                  ": another program listens there, or rank 0 is stopped; set MASTER_PORT to a free port, "
                  "the same on all ranks, or let device-run or torchrun choose one");
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
    if (!server)
      throwUnreachable(endpoint, rank, timeout, cause);
    if (const int problem = listenProblem(endpoint.port))
      throwCannotListen(endpoint, problem);
    throwServerUnreachable(endpoint, cause);
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
    throwNoAnswer(endpoint, server, rank, timeout);
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
