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

bool hasGloo() {
#ifdef USE_C10D_GLOO
  return true;
#else
  return false;
#endif
}

bool hasNccl() {
#ifdef USE_C10D_NCCL
  return true;
#else
  return false;
#endif
}

c10::intrusive_ptr<compat::Collectives> makeCollectives(const Job &job, const std::string &prefix) {
  auto store = c10::make_intrusive<c10d::PrefixStore>(prefix, job.store);
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
  for (auto &[number, group] : idle) {
    try {
      if (!well)
        group.release();
      else if (nccl)
        compat::shutDown(*group);
    } catch (const std::exception &error) {
      std::fprintf(stderr, "device_shim: rank %d: a group of NCCL could not be shut down: %s\n", rank,
                   error.what());
      group.release();
    }
  }
  idle.clear();
}

// Then threads of a group may wait for a dead rank until the timeout.
bool Job::isBroken() const { return std::uncaught_exceptions() > 0 || (liveness && liveness->hasFailed()); }

Backing::Backing(std::shared_ptr<Job> ofJob) : common(std::move(ofJob)), number(common->groups) {
  if (common->size > 1)
    group = makeCollectives(*common, "group" + std::to_string(common->groups++));
}

Backing::Backing(std::shared_ptr<Job> ofJob, int idleNumber) : common(std::move(ofJob)), number(idleNumber) {
  const auto found = common->idle.find(number);
  group = std::move(found->second);
  common->idle.erase(found);
}

Backing::~Backing() {
  if (group)
    common->idle.emplace(number, std::move(group));
}

Pending Backing::start(const char *name, c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> tensors,
                       std::function<void()> finish) const {
  auto operation = std::make_shared<Operation>(name, std::move(work), std::move(tensors), std::move(finish));
  operation->watch(common->liveness, /*blocksHost=*/!common->nccl, common->collectiveTimeout, common->device);
  return Pending(std::move(operation));
}

c10::intrusive_ptr<c10d::Work>
Backing::launch(const char *name, const std::function<c10::intrusive_ptr<c10d::Work>()> &call) const {
  if (!common->liveness)
    return call();
  common->liveness->throwIfFailed(name);
  try {
    auto work = call();
    common->liveness->began();
    return work;
  } catch (const c10::Error &) {
    // The caller's mistake, not a peer's: shapes, types, devices. NCCL's errors are of this class, too.
    common->liveness->throwIfFailed(name);
    throw;
  } catch (const std::logic_error &) {
    throw; // also
  } catch (const std::exception &error) {
    common->liveness->throwAfterBrokenConnection(name, error.what());
  }
}

} // namespace device_shim::detail
