#include "comm/Backing.h"

#include "comm/NetworkInterface.h"
#include "comm/StoreConnection.h"

#include <device_shim/Error.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace device_shim::detail {
namespace {

// Operation and Liveness keep to collectiveTimeout, and know more about the ranks than c10d does.
std::chrono::milliseconds afterOurs(const Job &job) {
  return job.collectiveTimeout +
         (job.liveness || !job.nccl ? std::chrono::seconds(30) : std::chrono::seconds(0));
}

#ifdef USE_C10D_GLOO
c10::intrusive_ptr<compat::Collectives> makeGloo(const Job &job,
                                                 const c10::intrusive_ptr<c10d::Store> &store) {
  auto options = c10d::ProcessGroupGloo::Options::create(afterOurs(job));
  const char *interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(
      interface && *interface ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                              : c10d::ProcessGroupGloo::createDeviceForHostname(
                                    addressTowards(job.masterAddress)));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, job.rank, job.size, options);
}
#endif

} // namespace

bool hasNccl() {
#ifdef USE_C10D_NCCL
  return true;
#else
  return false;
#endif
}

namespace {

Channel::Group makeCollectives(const Job &job, const c10::intrusive_ptr<c10d::Store> &store) {
#ifdef USE_C10D_NCCL
  if (job.nccl)
    return compat::makeNccl(store, job.rank, job.size, afterOurs(job));
#endif
#ifdef USE_C10D_GLOO
  return makeGloo(job, store);
#else
  throw InitError("device_shim was built without Gloo, which " + job.device.str() +
                  " needs: build it with gloo/config.h (libgloo-dev) installed, or train on CUDA devices");
#endif
}

} // namespace

std::unique_ptr<Channel> makeChannel(const Job &job, int number) {
  const auto prefix = "group" + std::to_string(number);
  auto group = makeCollectives(job, c10::make_intrusive<c10d::PrefixStore>(prefix, job.store));
  Channel::Store calls;
  if (job.nccl)
    calls = c10::make_intrusive<c10d::PrefixStore>(prefix + "/calls", job.store);
  Channel::Settings settings{number, job.rank, job.size, job.liveness, job.collectiveTimeout};
  return std::make_unique<Channel>(std::move(settings), std::move(group), std::move(calls));
}

Job::~Job() {
  if (!idle.empty())
    endGroups();
  if (liveness)
    liveness->leave(/*failed=*/std::uncaught_exceptions() > 0);
}

// Whether all ranks have come to the end of the job and none has failed.
bool Job::allLeaveWell() {
  const auto failed = [this] { return liveness && liveness->hasFailed(); };
  if (isBroken())
    return false;
  try {
    if (liveness)
      liveness->announceLeaving();
    store->add("ends", 1);
    return waitForCount(*store, "ends", size, collectiveTimeout, failed);
  } catch (const std::exception &) {
    return false; // the rank with the store is gone
  }
}

// Without shutdown() a group's destructor aborts what NCCL still does. After a failure the threads of a group
// end with the process instead.
void Job::endGroups() {
  const bool well = nccl ? allLeaveWell() : !isBroken();
  for (auto &[number, channel] : idle) {
    try {
      if (!well)
        channel->abandon();
      else if (nccl)
        compat::shutDown(channel->collectives());
    } catch (const std::exception &error) {
      std::fprintf(stderr, "device_shim: rank %d: a group of NCCL could not be shut down: %s\n", rank,
                   error.what());
      channel->abandon();
    }
  }
  idle.clear();
}

// Then threads of a group may wait for a dead rank until the timeout.
bool Job::isBroken() const { return std::uncaught_exceptions() > 0 || (liveness && liveness->hasFailed()); }

Backing::Backing(std::shared_ptr<Job> ofJob) : common(std::move(ofJob)) {
  if (common->size > 1)
    channel = makeChannel(*common, common->groups++);
}

Backing::Backing(std::shared_ptr<Job> ofJob, int idleNumber) : common(std::move(ofJob)) {
  const auto found = common->idle.find(idleNumber);
  channel = std::move(found->second);
  common->idle.erase(found);
}

Backing::~Backing() {
  if (channel)
    common->idle.emplace(channel->number(), std::move(channel));
}

Pending Backing::start(const char *name, const std::string &what, std::vector<at::Tensor> tensors,
                       Channel::Call call, std::function<void()> finish) const {
  const auto &liveness = common->liveness;
  if (liveness)
    liveness->throwIfFailed(name);
  Channel::Launched launched;
  try {
    launched = channel->start(name, what, tensors.front().device(), std::move(call));
  } catch (const c10::Error &) {
    // The caller's mistake, not a peer's: shapes, types, devices. NCCL's errors are of this class, too.
    if (liveness)
      liveness->throwIfFailed(name);
    throw;
  }
  if (liveness)
    liveness->began(channel->number(), channel->started());
  Operation::Settings settings;
  settings.name = name;
  settings.place = {channel->number(), channel->started(), what};
  settings.liveness = liveness;
  settings.blocksHost = !common->nccl;
  settings.timeout = common->collectiveTimeout;
  settings.device = common->device;
  return Pending(std::make_shared<Operation>(std::move(settings), std::move(launched), std::move(tensors),
                                             std::move(finish)));
}

} // namespace device_shim::detail
