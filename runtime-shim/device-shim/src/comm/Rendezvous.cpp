#include "comm/Rendezvous.h"

#include "comm/EndpointProbe.h"
#include "comm/StoreConnection.h"

#include <device_shim/Error.h>

#include <algorithm>
#include <future>
#include <stdexcept>
#include <thread>

namespace device_shim::detail {
namespace {

constexpr auto kNameTimeout = std::chrono::seconds(5);

// Why a rank does not join, for the others: they would wait for it.
const char *const kRefusalKey = "refusal";

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

std::vector<uint8_t> bytesOf(const std::string &text) { return {text.begin(), text.end()}; }

std::string textAt(c10d::Store &store, const std::string &key) {
  const auto bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

// What must be the same everywhere: a NCCL rank and a Gloo rank would wait for each other for ever.
std::string agreement(const Job &job) {
  return std::to_string(job.size) + " ranks, " + (job.nccl ? "nccl" : "gloo") + " on " +
         c10::DeviceTypeName(job.device.type(), /*lower_case=*/true) + " devices, LibTorch " + TORCH_VERSION;
}

void compareWithRankZero(c10d::Store &store, const Job &job) {
  const auto own = agreement(job);
  if (job.rank == 0) {
    store.set("agreement", bytesOf(own));
    return;
  }
  const auto theirs = textAt(store, "agreement");
  if (own == theirs)
    return;
  const std::string refusal = "rank " + std::to_string(job.rank) + " was started for " + own +
                              ", but rank 0 for " + theirs +
                              "; start all ranks with the same WORLD_SIZE, program and kind of device";
  store.set(kRefusalKey, bytesOf(refusal));
  throw InitError(refusal);
}

std::vector<int> missingRanks(c10d::Store &store, int size) {
  std::vector<int> missing;
  for (int rank = 0; rank < size; ++rank)
    if (!store.check({Liveness::identityKey(rank)}))
      missing.push_back(rank);
  return missing;
}

std::string listOf(const std::vector<int> &ranks) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > kShown ? text + " and " + std::to_string(ranks.size() - kShown) + " more" : text;
}

std::string lateness(c10d::Store &store, const Job &job, const Endpoint &endpoint,
                     std::chrono::milliseconds timeout) {
  return "rank " + std::to_string(job.rank) + " waited " + secondsText(timeout) + " at " + endpoint.text() +
         " for all " + std::to_string(job.size) +
         " ranks; missing: " + listOf(missingRanks(store, job.size)) +
         ". Start them with the same MASTER_ADDR and MASTER_PORT, or look why they ended";
}

// The store ends with rank 0, and the ranks that came shall see what is wrong, too.
void letOthersRead(c10d::Store &store, const std::string &refusal) {
  constexpr auto kReadTimeout = std::chrono::seconds(5);
  store.set(kRefusalKey, bytesOf(refusal));
  const auto came = static_cast<int>(store.add("came", 0));
  waitForCount(store, "read", came, kReadTimeout, [] { return false; });
}

void waitForAll(c10d::Store &store, const Job &job, const Endpoint &endpoint,
                std::chrono::milliseconds timeout) {
  bool refused = false;
  const auto isRefused = [&] { return refused = store.check({kRefusalKey}); };
  if (waitForCount(store, "came", job.size, timeout, isRefused))
    return;
  const auto refusal = refused ? textAt(store, kRefusalKey) : lateness(store, job, endpoint, timeout);
  store.add("read", 1);
  if (job.rank == 0)
    letOthersRead(store, refusal);
  throw InitError(refusal);
}

// Names of machines that only just started may come late, those with a mistake never.
void requireAddress(const Endpoint &endpoint, int rank, std::chrono::milliseconds timeout) {
  const auto end =
      std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(timeout, kNameTimeout);
  std::string problem;
  while (!(problem = resolutionProblem(endpoint.address)).empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (!problem.empty())
    throw InitError("rank " + std::to_string(rank) + ": MASTER_ADDR='" + endpoint.address +
                    "' has no address (" + problem +
                    "); set it to the name or the address of the machine of rank 0");
}

std::shared_ptr<Backing> connectAndTry(const std::shared_ptr<Job> &job) {
  compat::makeCurrent(job->device);
  auto backing = std::make_shared<Backing>(job);
  // NCCL connects with the first operation: errors shall show here.
  const auto ranks = Communicator(backing).reduce_number(1, Reduction::sum);
  TORCH_CHECK(ranks == job->size, "a first sum over the ranks gave ", ranks, " instead of ", job->size);
  return backing;
}

// c10d waits for the connections of all ranks without asking whether all still live, and for as long as a
// collective may take.
std::shared_ptr<Backing> connectWithin(const std::shared_ptr<Job> &job, std::chrono::milliseconds timeout) {
  auto promise = std::make_shared<std::promise<std::shared_ptr<Backing>>>();
  auto connected = promise->get_future();
  std::thread connecting([job, promise] {
    try {
      promise->set_value(connectAndTry(job));
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  constexpr auto kSlice = std::chrono::milliseconds(50);
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (connected.wait_for(kSlice) == std::future_status::timeout) {
    const bool late = std::chrono::steady_clock::now() > end;
    const bool failed = job->liveness && job->liveness->hasFailed();
    if (!late && !failed)
      continue;
    std::string why = "the other ranks did not connect within " + secondsText(timeout);
    try {
      if (failed)
        job->liveness->throwIfFailed("init_distributed");
    } catch (const PeerError &error) {
      why = error.what();
    }
    connecting.detach(); // it may wait for a rank that never comes, and holds all it uses
    if (job->liveness)   // or this rank would go on to give signs of life
      job->liveness->leave(/*failed=*/true);
    throw std::runtime_error(why);
  }
  connecting.join(); // the job ends where the program lets it go
  return connected.get();
}

} // namespace

void meet(Job &job, const LaunchEnvironment &place, const DistributedOptions &options) {
  const Endpoint endpoint{place.master_address, place.master_port};
  const bool server = job.rank == 0 && !place.agent_holds_store;
  const std::string prefix = "device_shim/" + std::to_string(place.attempt);
  requireAddress(endpoint, job.rank, options.init_timeout);
  try {
    const auto first = openAndCount(endpoint, server, job.rank, options.init_timeout,
                                    prefix + "/starts/" + std::to_string(job.rank));
    job.store = c10::make_intrusive<c10d::PrefixStore>(prefix, first.store);
    if (first.count > 1)
      throw InitError("rank " + std::to_string(job.rank) + " was started twice for the store at " +
                      endpoint.text() + "; give each process its own RANK, and each job its own MASTER_PORT");
    compareWithRankZero(*job.store, job);
    job.store->set(Liveness::identityKey(job.rank), bytesOf(ProcessIdentity::own().text()));
    job.store->add("came", 1);
    waitForAll(*job.store, job, endpoint, options.init_timeout);
    if (options.heartbeat_timeout.count() <= 0)
      return;
    Liveness::Settings settings;
    settings.rank = job.rank;
    settings.size = job.size;
    settings.holdsStore = server;
    settings.storeAddress = endpoint.text();
    settings.timeout = options.heartbeat_timeout;
    settings.grace = options.failure_grace;
    settings.leaveTimeout = options.collective_timeout;
    settings.collectiveTimeout = options.collective_timeout;
    // A connection of its own: a request that waits for an answer blocks the others on its connection.
    auto watching = openStore(endpoint, /*server=*/false, job.rank, options.heartbeat_timeout);
    job.liveness =
        std::make_shared<Liveness>(c10::make_intrusive<c10d::PrefixStore>(prefix, watching), settings);
  } catch (const InitError &) {
    throw;
  } catch (const std::exception &error) {
    throw InitError("rank " + std::to_string(job.rank) + " lost the store at " + endpoint.text() + " (" +
                    firstLine(error.what()) + "); rank 0 ended, or another program listens on that port");
  }
}

std::shared_ptr<Backing> connect(const std::shared_ptr<Job> &job, std::chrono::milliseconds timeout) {
  if (job->size == 1)
    return std::make_shared<Backing>(job);
  try {
    return connectWithin(job, timeout);
  } catch (const InitError &) {
    throw;
  } catch (const std::exception &error) {
    throw InitError("rank " + std::to_string(job->rank) +
                    " met the others at the store, but could not connect to "
                    "them with " +
                    (job->nccl ? "NCCL" : "Gloo") + ": " + firstLine(error.what()) +
                    "; check the network between the machines (" +
                    (job->nccl ? "NCCL_DEBUG=INFO says more, NCCL_SOCKET_IFNAME chooses the interface)"
                               : "GLOO_SOCKET_IFNAME chooses the interface)"));
  }
}

} // namespace device_shim::detail
