#include "Backing.h"

#include "NetworkInterface.h"
#include "StoreConnection.h"

#include <device_shim/Error.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace device_shim::detail {
namespace {

#ifdef USE_C10D_GLOO
c10::intrusive_ptr<compat::Collectives> makeGloo(const Job &job,
                                                 const c10::intrusive_ptr<c10d::Store> &store) {
  // Operation::wait() keeps to collectiveTimeout and knows more about the ranks than Gloo does.
  const auto afterOurs = job.collectiveTimeout + std::chrono::seconds(30);
  auto options = c10d::ProcessGroupGloo::Options::create(afterOurs);
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
    return compat::makeNccl(store, job.rank, job.size, job.collectiveTimeout);
#endif
#ifdef USE_C10D_GLOO
  return makeGloo(job, store);
#else
  throw InitError("device_shim was built without Gloo, which " + job.device.str() +
                  " needs: build it with gloo/config.h (libgloo-dev) installed, or train on CUDA devices");
#endif
}

Job::~Job() {
  if (!ended.empty())
    endGroups();
  if (liveness)
    liveness->leave(/*failed=*/std::uncaught_exceptions() > 0);
}

// Whether all ranks have come to the end of the job and none has failed.
bool Job::allLeaveWell() {
  const auto failed = [this] { return liveness && liveness->hasFailed(); };
  if (std::uncaught_exceptions() > 0 || failed())
    return false;
  try {
    store->add("leaving", 1);
    return waitForCount(*store, "leaving", size, collectiveTimeout, failed);
  } catch (const std::exception &) {
    return false; // the rank with the store is gone
  }
}

// Without shutdown() a group's destructor aborts what NCCL still does. After a failure its threads may wait
// for a dead rank: they end with the process instead.
void Job::endGroups() {
  const bool well = allLeaveWell();
  for (auto &[number, group] : ended) {
    try {
      if (well)
        compat::shutDown(*group);
      else
        group.release();
    } catch (const std::exception &error) {
      std::fprintf(stderr, "device_shim: rank %d: a group of NCCL could not be shut down: %s\n", rank,
                   error.what());
      group.release();
    }
  }
  ended.clear();
}

Backing::Backing(std::shared_ptr<Job> ofJob) : common(std::move(ofJob)), number(common->groups) {
  if (common->size > 1)
    group = makeCollectives(*common, "group" + std::to_string(common->groups++));
}

Backing::~Backing() {
  if (!group)
    return;
  if (common->nccl)
    common->ended.emplace(number, std::move(group));
  else if (common->liveness && (common->liveness->hasFailed() || std::uncaught_exceptions() > 0))
    group.release(); // its threads may wait for a dead rank until the timeout: they end with the process
}

Pending Backing::start(const char *name, c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> tensors,
                       std::function<void()> finish) const {
  auto operation = std::make_shared<Operation>(name, std::move(work), std::move(tensors), std::move(finish));
  operation->watch(common->liveness, /*blocksHost=*/!common->nccl, common->collectiveTimeout);
  return Pending(std::move(operation));
}

c10::intrusive_ptr<c10d::Work>
Backing::launch(const char *name, const std::function<c10::intrusive_ptr<c10d::Work>()> &call) const {
  if (!common->liveness)
    return call();
  common->liveness->throwIfFailed(name);
  try {
    return call();
  } catch (const c10::Error &error) {
    // The caller's mistake, not a peer's: shapes, types, devices.
    throw;
  } catch (const std::exception &error) {
    common->liveness->throwAfterBrokenConnection(name, error.what());
  }
}

} // namespace device_shim::detail
