#include <device_shim/Distributed.h>

#include "base/ModelsOverDevices.h"
#include "comm/Backing.h"
#include "comm/Rendezvous.h"

#include <device_shim/Error.h>
#include <device_shim/LaunchEnvironment.h>

#include <torch/cuda.h>

#include <csignal>
#include <cstdlib>
#include <mutex>

namespace device_shim {
namespace {

using detail::Job;

std::mutex joinedMutex;
// Not owning: the job ends with the communicators.
std::weak_ptr<Job> joined; // NOLINT(cert-err58-cpp)

LaunchEnvironment placeInJob(const DistributedOptions &options) {
  auto place =
      options.rank && options.world_size ? LaunchEnvironment{} : LaunchEnvironment::from_environment();
  if (options.rank.has_value() != options.world_size.has_value())
    throw InitError("DistributedOptions has only one of rank and world_size; set both, or none of them");
  if (options.rank) {
    place.rank = place.local_rank = *options.rank;
    place.world_size = place.local_world_size = *options.world_size;
  }
  place.local_rank = options.local_rank.value_or(place.local_rank);
  place.master_address = options.master_address.value_or(place.master_address);
  place.master_port = options.master_port.value_or(place.master_port);
  if (place.world_size < 1 || place.rank < 0 || place.rank >= place.world_size)
    throw InitError("rank " + std::to_string(place.rank) + " does not exist in a job of " +
                    std::to_string(place.world_size) + " ranks; ranks count from 0");
  return place;
}

// The index of a CUDA device is checked before anything touches it: CUDA's own error names no rank.
at::Device deviceOf(const DistributedOptions &options, const LaunchEnvironment &place) {
  const auto visible = static_cast<int>(torch::cuda::device_count());
  if (!options.device && visible == 0)
    return at::kCPU;
  auto device =
      options.device.value_or(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(place.local_rank)));
  if (!device.is_cuda())
    return device;
  const int index = device.has_index() ? device.index() : place.local_rank;
  if (index >= visible) {
    const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
    throw InitError("rank " + std::to_string(place.rank) + " (local rank " +
                    std::to_string(place.local_rank) + ") wants cuda:" + std::to_string(index) +
                    ", but this process sees " +
                    (visible == 1 ? "1 GPU" : std::to_string(visible) + " GPUs") +
                    (list ? " (CUDA_VISIBLE_DEVICES=" + std::string(list) + ")" : std::string()) +
                    "; start at most that many ranks on this machine, or make more GPUs visible");
  }
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

// exit() ends a process without the destructors of main()'s variables.
void tellOfExit() {
  static const bool once = std::atexit([] {
                             if (const auto job = joined.lock(); job && job->liveness)
                               job->liveness->processExits();
                           }) == 0;
  (void)once;
}

// Virtual GPUs are CUDA devices to LibTorch, but their memory is the host's.
bool virtualGpus() { return std::getenv("VIRTUAL_GPUS") != nullptr; }

// Gloo and the store write to sockets whose other end may have died. Python ignores the signal that comes
// with that, so in LibTorch's own world the write is an error; a C++ program would end without a word.
void ignoreBrokenPipes() {
  struct sigaction current{};
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

bool usesNccl(Backend backend, at::Device device) {
  if (backend == Backend::automatic)
    return device.is_cuda() && detail::hasNccl() && !virtualGpus();
  if (backend == Backend::gloo)
    return false;
  if (!detail::hasNccl())
    throw InitError(
        "the NCCL backend was asked for, but device_shim was built without it; build it against a "
        "LibTorch with CUDA where nccl.h is found, or leave the choice to it");
  if (!device.is_cuda())
    throw InitError("the NCCL backend needs a CUDA device, but this rank's is " + device.str());
  return true;
}

} // namespace

bool is_distributed() {
  std::lock_guard<std::mutex> lock(joinedMutex);
  const auto job = joined.lock();
  return job && job->size > 1;
}

std::shared_ptr<Communicator> init_distributed(const DistributedOptions &options) {
  std::lock_guard<std::mutex> lock(joinedMutex);
  if (!joined.expired())
    throw InitError("this process has joined a job already; call init_distributed() once and pass its "
                    "communicator on, or Communicator::duplicate() of it");
  const auto place = placeInJob(options);
  if (place.world_size > 1 && detail::modelsOverSeveralDevices() > 0)
    throw InitError("rank " + std::to_string(place.rank) +
                    ": a model of this process was spread over several "
                    "devices by a device_map, which cannot be combined with distributed training; drop the "
                    "device_map, and put the whole model on this rank's device");
  auto job = std::make_shared<Job>();
  job->rank = place.rank;
  job->size = place.world_size;
  job->localRank = place.local_rank;
  job->device = deviceOf(options, place);
  job->nccl = usesNccl(options.backend, job->device);
  job->masterAddress = place.master_address;
  job->collectiveTimeout = options.collective_timeout;
  compat::makeCurrent(job->device);
  if (job->size > 1) {
    ignoreBrokenPipes();
    tellOfExit();
    detail::meet(*job, place, options);
  }
  auto communicator = std::make_shared<Communicator>(detail::connect(job, options.init_timeout));
  joined = job;
  return communicator;
}

} // namespace device_shim
