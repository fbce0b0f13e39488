// Joining a job, everything that can go wrong with it, and the collectives.
#include "Ranks.h"
#include "comm/StoreConnection.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <unistd.h>

#include <thread>

using namespace device_shim;
using device_shim::detail::waitForCount;
using ranks::Launch;

namespace {

DistributedOptions quick() {
  DistributedOptions options;
  options.init_timeout = std::chrono::seconds(6);
  return options;
}

// Ranks that cannot join must say so with `part`.
std::vector<ranks::Ended> expectInitError(const Launch &launch, const std::string &part) {
  auto all = ranks::run(launch);
  for (const auto &ended : all) {
    EXPECT_EQ(ended.exitCode, 1) << ended.output;
    EXPECT_NE(ended.output.find(part), std::string::npos) << ended.output;
    EXPECT_LT(ended.seconds, 60);
  }
  return all;
}

// A program that has a port, accepts connections and never says a word.
struct Listener {
  Listener() : handle(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(handle, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
    EXPECT_EQ(listen(handle, 8), 0);
    getsockname(handle, reinterpret_cast<sockaddr *>(&address), &length);
    port = ntohs(address.sin_port);
  }
  ~Listener() { close(handle); }

  int handle;
  int port = 0;
};

// What a single rank refuses, too.
void requireRefusals(Communicator &all) {
  const int size = all.size();
  const auto longs = torch::zeros({2 * size}, torch::kLong), doubles = torch::ones({2}, torch::kDouble);
  MUST_THROW(all.all_gather(longs, doubles), UsageError, "of type Double into an output of type Long");
  MUST_THROW(all.reduce_scatter(torch::zeros({2}, torch::kLong), torch::full({2 * size}, 0.5)), UsageError,
             "of type Float into an output of type Long");
  auto wide = torch::empty({2}, torch::kDouble);
  all.reduce_scatter(wide, torch::full({2 * size}, 0.5));
  MUST(wide[1].item<double>() == 0.5 * size);
  MUST_THROW(all.all_reduce(torch::ones({2}, torch::kComplexFloat)), UsageError,
             "cannot reduce elements of type ComplexFloat");
  MUST_THROW(all.all_reduce(torch::ones({2}).to_sparse()), UsageError, "dense tensors");
  auto text = torch::ones({2});
  MUST_THROW(all.broadcast(text, size), UsageError, "broadcast from rank " + std::to_string(size));
  MUST_THROW(all.broadcast_text("", -1), UsageError, "from rank -1");
  all.all_reduce(text); // and goes on
}

} // namespace

RANK_WORKER(join) { init_distributed(quick()); }

TEST(Init, AloneWithoutEnvironment) {
  Launch launch{"alone", 1};
  launch.environment = {{"RANK", "(unset)"},        {"WORLD_SIZE", "(unset)"},
                        {"LOCAL_RANK", "(unset)"},  {"MASTER_PORT", "(unset)"},
                        {"MASTER_ADDR", "(unset)"}, {"LOCAL_WORLD_SIZE", "(unset)"}};
  ranks::runAll(launch);
}

RANK_WORKER(alone) {
  auto communicator = init_distributed();
  MUST(communicator->size() == 1 && communicator->rank() == 0 && communicator->backend() == "none");
  MUST(!is_distributed());
  auto value = torch::full({3}, 2.0);
  communicator->all_reduce(value);
  MUST(value.sum().item<double>() == 6.0);
  auto gathered = torch::empty({3});
  communicator->all_gather(gathered, value);
  MUST(gathered.equal(value));
  requireRefusals(*communicator);
  MUST_THROW(init_distributed(), InitError, "joined a job already");
  communicator.reset();
  init_distributed();
}

TEST(Init, EnvironmentIsChecked) {
  Launch launch{"join", 1};
  launch.environment = {{"WORLD_SIZE", "(unset)"}};
  expectInitError(launch, "RANK is set, but WORLD_SIZE is not");
  launch.environment = {{"WORLD_SIZE", "4x"}};
  expectInitError(launch, "WORLD_SIZE='4x' is not a whole number");
  launch.environment = {{"WORLD_SIZE", "99999999999999999999"}};
  expectInitError(launch, "is not a whole number");
  launch.environment = {{"WORLD_SIZE", " 4"}};
  expectInitError(launch, "WORLD_SIZE=' 4' is not a whole number");
  launch.environment = {{"WORLD_SIZE", "2"}, {"RANK", "2"}};
  expectInitError(launch, "RANK=2 is not between 0 and 1");
  launch.environment = {{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "(unset)"}};
  expectInitError(launch, "MASTER_ADDR, the host of rank 0, is not set");
  launch.environment = {{"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}};
  expectInitError(launch, "MASTER_PORT=70000 is not between 1 and 65535");
  launch.environment = {{"WORLD_SIZE", "2"},
                        {"LOCAL_WORLD_SIZE", "2"},
                        {"RANK", "1"},
                        {"LOCAL_RANK", "1"},
                        {"MASTER_ADDR", "no.such.host.invalid"}};
  expectInitError(launch, "rank 1: MASTER_ADDR='no.such.host.invalid' has no address");
}

// Each would be the only rank of a job of its own.
TEST(Init, ProcessesOfALauncherThatSetsNoRank) {
  Launch launch{"join", 1};
  const std::map<std::string, std::string> none = {{"RANK", "(unset)"}, {"WORLD_SIZE", "(unset)"}};
  const auto refused = [&](std::map<std::string, std::string> variables, const char *part) {
    launch.environment = none;
    launch.environment.insert(variables.begin(), variables.end());
    expectInitError(launch, part);
  };
  refused({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}, "srun started several processes");
  refused({{"SLURM_PROCID", "2"}}, "this is number 2 (SLURM_PROCID)");
  refused({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, "'mpirun device-run PROGRAM'");
  refused({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}, "mpiexec started several processes");
  // A batch script, a step of one task, and processes that are meant to be alone.
  for (const auto &variables : std::vector<std::map<std::string, std::string>>{
           {{"RANK", "(unset)"}, {"WORLD_SIZE", "(unset)"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}},
           {{"RANK", "(unset)"}, {"WORLD_SIZE", "(unset)"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
           {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"SLURM_PROCID", "2"}}}) {
    launch.environment = variables;
    launch.environment.insert({{"LOCAL_RANK", "(unset)"}, {"LOCAL_WORLD_SIZE", "(unset)"}});
    ranks::runAll(launch);
  }
}

TEST(Init, PortInUse) {
  const Listener other;
  Launch launch{"join", 1};
  launch.worldSize = 2;
  launch.port = other.port;
  expectInitError(launch, "rank 0 cannot listen on port " + std::to_string(launch.port) +
                              " (Address already in use); another program uses it");
}

TEST(Init, ListenerThatDoesNotAnswer) {
  const Listener other;
  Launch launch{"join", 1};
  launch.worldSize = 2;
  launch.firstRank = 1;
  launch.port = other.port;
  const auto ended = expectInitError(launch, "within 6.0 s: another program listens there");
  EXPECT_LT(ended.front().seconds, 20);
}

TEST(Init, AddressThatIsNotRankZeros) {
  Launch launch{"join", 1};
  launch.worldSize = 2;
  launch.environment = {{"MASTER_ADDR", "no.such.host.invalid"}};
  expectInitError(launch, "MASTER_ADDR='no.such.host.invalid' has no address");
  // A block of addresses that is reserved for documentation.
  launch.environment = {{"MASTER_ADDR", "192.0.2.1"}};
  expectInitError(launch, "MASTER_ADDR='192.0.2.1' does not lead to it");
}

TEST(Init, MissingPeersAreListed) {
  Launch launch{"join", 2};
  launch.worldSize = 4;
  expectInitError(launch, "missing: 2, 3");
}

// Rank 0 gives up first, and the store ends with it.
TEST(Init, MissingPeersAreListedByALateRank) {
  Launch launch{"join_late", 2};
  launch.worldSize = 4;
  expectInitError(launch, "missing: 2, 3");
}

RANK_WORKER(join_late) {
  if (std::string(::getenv("RANK")) == "1")
    std::this_thread::sleep_for(std::chrono::seconds(3));
  init_distributed(quick());
}

TEST(Init, RankZeroMissing) {
  Launch launch{"join", 1};
  launch.worldSize = 2;
  launch.firstRank = 1;
  expectInitError(launch, "rank 1 could not reach rank 0 at 127.0.0.1:");
}

TEST(Init, SameRankTwice) {
  Launch launch{"join", 2};
  launch.environment = {{"RANK", "0"}, {"WORLD_SIZE", "3"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  launch.port = ranks::freePort();
  // Rank 1 of a second launch holds the store, as torchrun's agent would.
  launch.worker = "twice";
  const auto ended = ranks::run(launch);
  EXPECT_NE((ended[0].output + ended[1].output).find("rank 0 was started twice"), std::string::npos)
      << ended[0].output << ended[1].output;
}

RANK_WORKER(twice) {
  // The first of the two that gets the port opens the store.
  try {
    ::setenv("TORCHELASTIC_USE_AGENT_STORE", "False", 1);
    init_distributed(quick());
  } catch (const InitError &error) {
    if (std::string(error.what()).find("cannot listen") == std::string::npos)
      throw;
    ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    init_distributed(quick());
  }
}

TEST(Init, DeviceOutOfRange) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  Launch launch{"join", 1, 6};
  launch.worldSize = 4;
  launch.firstRank = 3;
  launch.environment = {{"CUDA_VISIBLE_DEVICES", "4,5"}};
  expectInitError(launch, "wants cuda:3, but this process sees 2 GPUs (CUDA_VISIBLE_DEVICES=4,5)");
}

// All learn at once who disagrees, also rank 0, which could only wait for the rank that does not come.
RANK_WORKER(join_as_part_of_three) {
  auto options = quick();
  options.rank = std::stoi(std::getenv("RANK"));
  options.world_size = *options.rank == 1 ? 3 : 2;
  options.master_address = std::getenv("MASTER_ADDR");
  options.master_port = std::stoi(std::getenv("MASTER_PORT"));
  init_distributed(options);
}

TEST(Init, DifferentWorldSizes) {
  const auto all = expectInitError({"join_as_part_of_three", 2}, "rank 1 was started for 3 ranks");
  EXPECT_LT(all[0].seconds, 6) << all[0].output;
}

TEST(Init, RanksAreCounted) {
  c10d::HashStore store;
  const auto never = [] { return false; };
  store.add("came", 1);
  EXPECT_FALSE(waitForCount(store, "came", 2, std::chrono::milliseconds(50), never));
  EXPECT_FALSE(waitForCount(store, "came", 2, std::chrono::hours(1), [] { return true; }));
  store.add("came", 1);
  EXPECT_TRUE(waitForCount(store, "came", 2, std::chrono::milliseconds(0), [] { return true; }));
}

// One rank cannot connect; the others do not wait for it, and are told.
RANK_WORKER(connect_over_nothing) {
  if (std::string(std::getenv("RANK")) == "1")
    setenv("GLOO_SOCKET_IFNAME", "nosuch0", 1);
  auto options = quick();
  options.failure_grace = std::chrono::minutes(5);
  init_distributed(options);
}

TEST(Init, RankThatCannotConnect) {
  const auto all = expectInitError({"connect_over_nothing", 2}, "could not connect to them with Gloo");
  EXPECT_NE(all[0].output.find("rank 1 ended with an error"), std::string::npos) << all[0].output;
}

RANK_WORKER(disagree) {
  DistributedOptions options = quick();
  if (std::string(std::getenv("RANK")) == "1")
    options.device = torch::kCPU;
  init_distributed(options);
}

TEST(Init, RanksMustAgree) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  const auto ended = ranks::run({"disagree", 2, 2});
  EXPECT_EQ(ended[1].exitCode, 1);
  EXPECT_NE(ended[1].output.find("was started for 2 ranks, gloo on cpu devices"), std::string::npos)
      << ended[1].output;
}

RANK_WORKER(collectives) {
  auto communicator = init_distributed();
  const int rank = communicator->rank(), size = communicator->size();
  const auto device = communicator->device();
  MUST(is_distributed() && communicator->backend() == "gloo");
  if (device.is_cuda()) {
    MUST(device.index() == rank);
    MUST(c10::impl::VirtualGuardImpl(torch::kCUDA).getDevice() == device);
  }
  const double sumOfRanks = size * (size + 1) / 2.0;
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kLong, torch::kHalf}) {
    const auto options = torch::TensorOptions().dtype(type).device(device);
    auto value = torch::full({3, 2}, rank + 1, options);
    communicator->all_reduce(value);
    MUST((value.to(torch::kDouble) == sumOfRanks).all().item<bool>());
    auto strided = torch::full({4, 3}, rank + 1, options).t();
    communicator->all_reduce(strided, Reduction::maximum);
    MUST((strided.to(torch::kDouble) == size).all().item<bool>());
    auto text = torch::full({5}, rank, options);
    communicator->broadcast(text, size - 1);
    MUST((text.to(torch::kDouble) == size - 1).all().item<bool>());
    auto all = torch::empty({size * 2}, options);
    communicator->all_gather(all, torch::full({2}, rank, options));
    for (int other = 0; other < size; ++other)
      MUST(all[2 * other + 1].item<double>() == other);
    auto parts = torch::arange(size * 2, options) * (rank + 1);
    auto own = torch::empty({2}, options);
    communicator->reduce_scatter(own, parts);
    MUST(own[1].item<double>() == (2 * rank + 1) * sumOfRanks);
  }
  auto inPlace = torch::zeros({size * 3}, device);
  inPlace.narrow(0, rank * 3, 3).fill_(rank + 1);
  communicator->all_gather(inPlace, inPlace.narrow(0, rank * 3, 3));
  MUST(inPlace.sum().item<double>() == 3 * sumOfRanks);
  auto other = communicator->duplicate();
  auto first = torch::full({2}, 1.0, device), second = torch::full({2}, 2.0, device);
  auto a = rank % 2 ? communicator->all_reduce_async(first) : other->all_reduce_async(second);
  auto b = rank % 2 ? other->all_reduce_async(second) : communicator->all_reduce_async(first);
  a.wait();
  b.wait();
  MUST(first[0].item<double>() == size && second[0].item<double>() == 2 * size);
  MUST(communicator->broadcast_text(rank == 1 ? "from one" : "", 1) == "from one");
  MUST(communicator->reduce_number(rank, Reduction::minimum) == 0);
  MUST_THROW(communicator->all_gather(torch::empty({3}), torch::empty({2})), UsageError,
             "contiguous vectors");
  requireRefusals(*communicator);
  communicator->barrier();
}

TEST(Collectives, Cpu) {
  ranks::runAll({"collectives", 2});
  ranks::runAll({"collectives", 4});
}

TEST(Collectives, VirtualGpus) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({"collectives", 2, 2});
  ranks::runAll({"collectives", 4, 4});
}

// What a communicator leaves behind serves the next one, unless the ranks have different ones to spare.
RANK_WORKER(communicators_come_and_go) {
  auto communicator = init_distributed();
  std::vector<std::shared_ptr<Communicator>> held;
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  std::ptrdiff_t before = 0;
  for (int round = 0; round < 8; ++round) {
    auto other = communicator->duplicate();
    MUST(other->reduce_number(round, Reduction::sum) == round * communicator->size());
    MUST(communicator->reduce_number(1, Reduction::sum) == communicator->size());
    if (round == 3 && communicator->rank() == 1)
      held.push_back(other);
    before = round == 5 ? threads() : before;
  }
  MUST(threads() == before);
  held.clear();
  communicator->duplicate()->barrier();
}

TEST(Collectives, CommunicatorsComeAndGo) { ranks::runAll({"communicators_come_and_go", 2}); }

// Two machines: each has its own loopback address, and rank 0 listens on the first.
TEST(Collectives, OtherAddress) {
  Launch launch{"collectives", 2};
  launch.environment = {{"MASTER_ADDR", "127.0.0.2"}};
  ranks::runAll(launch);
}
