#include "comm/Operation.h"

#include "comm/SlicedWait.h"

#include <c10/core/Event.h>
#include <device_shim/Communicator.h>
#include <device_shim/Error.h>

#include <stdexcept>

namespace device_shim {

void Pending::wait() {
  if (operation)
    operation->wait();
}

namespace detail {
namespace {

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

} // namespace

Operation::Operation(Settings ofOperation, Launched started, std::vector<at::Tensor> tensors,
                     std::function<void()> rest)
    : settings(std::move(ofOperation)), launched(std::move(started)), keep(std::move(tensors)),
      finish(std::move(rest)), number(settings.liveness ? settings.liveness->operationsBegun() : 0) {}

void Operation::wait() {
  if (done)
    return;
  done = true;
  if (settings.liveness)
    settings.liveness->throwIfFailed(settings.name);
  waitForLaunch();
  try {
    if (const auto work = launched.get())
      settings.blocksHost ? waitInSlices(*work, settings.name, settings.liveness.get(), settings.timeout)
                          : waitOnDevice(*work);
  } catch (const PeerError &) {
    if (settings.liveness) // which knows why
      settings.liveness->throwIfFailed(settings.name);
    throw;
  } catch (const c10::Error &error) {
    // Gloo's connections throw others: this is an operation on tensors that LibTorch refused. NCCL's are of
    // this class, too.
    if (settings.blocksHost)
      throw;
    failed(error);
  } catch (const std::logic_error &) {
    throw;
  } catch (const std::exception &error) {
    failed(error);
  }
  launched = {};
  if (finish)
    finish();
  finish = nullptr;
  keep.clear();
}

// Until the ranks have agreed. What the channel finds out is the failure of the job.
void Operation::waitForLaunch() {
  const Standstill::Wait waiting(settings.liveness ? &settings.liveness->waits() : nullptr, settings.place);
  while (launched.wait_for(kSlice) != std::future_status::ready)
    if (settings.liveness)
      settings.liveness->throwIfFailed(settings.name);
  if (settings.liveness)
    settings.liveness->throwIfFailed(settings.name);
}

void Operation::failed(const std::exception &error) const {
  const auto cause = firstLine(error.what());
  if (settings.liveness) {
    settings.liveness->reportBrokenConnection(settings.name, cause);
    settings.liveness->throwIfFailed(settings.name);
  }
  throw PeerError(std::string("a connection to another rank broke in '") + settings.name + "': " + cause);
}

// Keeps an event and not the work, which holds the memory of its tensors.
void Operation::waitOnDevice(c10d::Work &work) {
  work.wait();
  const auto device = settings.device;
  if (!settings.liveness || !device.is_cuda())
    return;
  auto passed = std::make_shared<c10::Event>(device.type());
  passed->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  settings.liveness->watchDevice(settings.name, number, [passed = std::move(passed), place = device] {
    try {
      compat::makeCurrent(place); // else CUDA makes a context on the first GPU for the watching thread
      return passed->query();
    } catch (const std::exception &) {
      return true; // an error of the device, which shows in the program's own calls
    }
  });
}

} // namespace detail
} // namespace device_shim
