#include "comm/Operation.h"

#include <c10/core/Event.h>
#include <device_shim/Communicator.h>
#include <device_shim/Error.h>

namespace device_shim {

void Pending::wait() {
  if (operation)
    operation->wait();
}

namespace detail {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(100);

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

} // namespace

Operation::Operation(const char *operationName, c10::intrusive_ptr<c10d::Work> started,
                     std::vector<at::Tensor> tensors, std::function<void()> rest)
    : name(operationName), work(std::move(started)), keep(std::move(tensors)), finish(std::move(rest)) {}

void Operation::watch(std::shared_ptr<Liveness> watcher, bool workBlocksHost,
                      std::chrono::milliseconds longest, at::Device ofRank) {
  liveness = std::move(watcher);
  number = liveness ? liveness->operationsBegun() : 0;
  device = ofRank;
  blocksHost = workBlocksHost;
  timeout = longest;
}

void Operation::wait() {
  if (done)
    return;
  done = true;
  if (work) {
    if (liveness)
      liveness->throwIfFailed(name);
    try {
      if (blocksHost)
        waitOnHost();
      else
        waitOnDevice();
    } catch (const PeerError &) {
      throw;
    } catch (const c10::Error &error) {
      // Gloo's connections throw others: this is an operation on tensors that LibTorch refused. NCCL's are of
      // this class, too.
      if (blocksHost)
        throw;
      failed(error);
    } catch (const std::exception &error) {
      failed(error);
    }
  }
  work.reset();
  if (finish)
    finish();
  finish = nullptr;
  keep.clear();
}

void Operation::failed(const std::exception &error) const {
  if (!liveness)
    throw PeerError(std::string("a connection to another rank broke in '") + name +
                    "': " + firstLine(error.what()));
  liveness->throwAfterBrokenConnection(name, firstLine(error.what()));
}

// Keeps an event and not the work, which holds the memory of its tensors.
void Operation::waitOnDevice() {
  work->wait();
  if (!liveness || !device.is_cuda())
    return;
  auto passed = std::make_shared<c10::Event>(device.type());
  passed->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  liveness->watchDevice(name, number, [passed = std::move(passed), place = device] {
    try {
      compat::makeCurrent(place); // else CUDA makes a context on the first GPU for the watching thread
      return passed->query();
    } catch (const std::exception &) {
      return true; // an error of the device, which shows in the program's own calls
    }
  });
}

void Operation::waitOnHost() {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    try {
      work->wait(kSlice);
      return;
    } catch (const std::exception &) {
      // Thrown for the end of the slice, and for a work that failed; which one, wait() says when it is over.
      if (work->isCompleted()) {
        work->wait();
        return;
      }
    }
    if (liveness)
      liveness->throwIfFailed(name);
    if (std::chrono::steady_clock::now() <= end)
      continue;
    if (liveness)
      liveness->throwTimeout(name, timeout);
    throw PeerError(std::string("the other ranks did not take part in '") + name +
                    "' within the collective_timeout");
  }
}

} // namespace detail
} // namespace device_shim
