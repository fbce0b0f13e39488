// The death of a rank, and ranks that leave early or do not take part.
#include "Ranks.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>

#include <csignal>

using namespace device_shim;
using ranks::Launch;

// Ranks train for ever; the last one kills itself.
RANK_WORKER(one_is_killed) {
  auto communicator = init_distributed();
  const std::string how = std::getenv("DEATH");
  auto value = torch::ones({1000});
  for (int step = 0;; ++step) {
    if (step == 20 && communicator->rank() == communicator->size() - 1) {
      std::cout << "dying at " << std::fixed << ranks::now() << std::endl;
      if (how == "throw")
        throw std::runtime_error("out of memory, say");
      raise(how == "stop" ? SIGSTOP : SIGKILL);
    }
    if (how == "busy" && step == 20)
      std::this_thread::sleep_for(std::chrono::hours(1));
    communicator->all_reduce(value.clone());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

namespace {

double timeOfDeath(const std::string &output) {
  const std::string words = "dying at ";
  const auto at = output.find(words);
  return at == std::string::npos ? 0 : std::stod(output.substr(at + words.size()));
}

void expectAllToldOf(const std::string &how, const std::string &part, int size) {
  Launch launch{"one_is_killed", size};
  launch.environment = {{"DEATH", how}};
  launch.seconds = 60;
  launch.survivors = how == "stop" ? 1 : 0;
  const auto ended = ranks::run(launch);
  const double death = timeOfDeath(ended[size - 1].output);
  for (int rank = 0; rank + 1 < size; ++rank) {
    EXPECT_EQ(ended[rank].exitCode, 1) << how << ": " << ended[rank].output;
    EXPECT_NE(ended[rank].output.find(part), std::string::npos) << how << ": " << ended[rank].output;
    EXPECT_LT(ended[rank].at - death, 10) << how;
    std::cout << how << ": rank " << rank << " ended " << ended[rank].at - death << " s after the death\n";
  }
}

} // namespace

TEST(Peers, KilledRankEndsTheJob) { expectAllToldOf("kill", "ended without leaving the job", 4); }
TEST(Peers, RankThatThrowsEndsTheJob) { expectAllToldOf("throw", "ended with an error", 2); }
TEST(Peers, StoppedRankEndsTheJob) { expectAllToldOf("stop", "gave no sign of life", 2); }
// The others are in no collective and would not notice by themselves.
TEST(Peers, BusyRanksAreEnded) { expectAllToldOf("busy", "ending this process", 4); }

RANK_WORKER(first_is_killed) {
  auto communicator = init_distributed();
  if (communicator->rank() == 0) {
    std::cout << "dying at " << std::fixed << ranks::now() << std::endl;
    raise(SIGKILL);
  }
  while (true)
    communicator->all_reduce(torch::ones({1000}));
}

TEST(Peers, RankWithTheStoreIsKilled) {
  const auto ended = ranks::run({"first_is_killed", 4, -1, {}, 60});
  for (int rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(ended[rank].exitCode, 1);
    EXPECT_NE(ended[rank].output.find("is gone: rank 0"), std::string::npos) << ended[rank].output;
    EXPECT_LT(ended[rank].at - timeOfDeath(ended[0].output), 10);
  }
}

// Ranks that are done early are not taken for dead, also rank 0, which holds the store.
RANK_WORKER(end_one_by_one) {
  auto communicator = init_distributed();
  communicator->barrier();
  std::this_thread::sleep_for(std::chrono::seconds(communicator->rank()));
}

TEST(Peers, LeavingEarlyIsNoFailure) {
  for (const auto &ended : ranks::runAll({"end_one_by_one", 4}))
    EXPECT_EQ(ended.output, "");
}

RANK_WORKER(one_does_not_take_part) {
  DistributedOptions options;
  options.collective_timeout = std::chrono::seconds(2);
  auto communicator = init_distributed(options);
  if (communicator->rank() == 1)
    std::this_thread::sleep_for(std::chrono::seconds(8));
  else
    MUST_THROW(communicator->all_reduce(torch::ones({2})), PeerError, "not all of them take part");
}

TEST(Peers, CollectiveTimeout) {
  const auto ended = ranks::run({"one_does_not_take_part", 2});
  EXPECT_EQ(ended[0].exitCode, 0) << ended[0].output;
  // Also the rank that the others waited for is told.
  for (const auto &each : ended) {
    EXPECT_NE(each.output.find("rank 0 waited 2.0 s"), std::string::npos) << each.output;
    EXPECT_NE(each.output.find("operations begun: 1 by rank 1, 2 by rank 0"), std::string::npos)
        << each.output;
  }
}

// Also with 0 it is an end without leaving.
RANK_WORKER(one_calls_exit) {
  auto communicator = init_distributed();
  communicator->barrier();
  if (communicator->rank() == 1)
    std::exit(0);
  communicator->all_reduce(torch::ones({1000}));
}

TEST(Peers, ExitIsNamed) {
  const auto ended = ranks::run({"one_calls_exit", 2});
  EXPECT_EQ(ended[1].exitCode, 0) << ended[1].output;
  EXPECT_EQ(ended[0].exitCode, 1);
  EXPECT_NE(ended[0].output.find("ended by exit() before it left the job"), std::string::npos)
      << ended[0].output;
  EXPECT_NE(ended[0].output.find("return from main() instead"), std::string::npos) << ended[0].output;
}

// The second rank has fewer batches than the others.
RANK_WORKER(one_has_fewer_batches) {
  auto communicator = init_distributed();
  auto value = torch::ones({1000});
  for (int step = 0; step < (communicator->rank() == 1 ? 3 : 5); ++step)
    communicator->all_reduce(value.clone());
}

TEST(Peers, RankThatFinishedEarlyIsNamed) {
  const auto ended = ranks::run({"one_has_fewer_batches", 2});
  EXPECT_EQ(ended[1].exitCode, 0) << ended[1].output;
  EXPECT_EQ(ended[0].exitCode, 1);
  EXPECT_NE(ended[0].output.find("rank 1 has finished"), std::string::npos) << ended[0].output;
  EXPECT_LT(ended[0].at - ended[1].at, 3);
  EXPECT_EQ(ended[0].output.find("failed first"), std::string::npos) << ended[0].output;
}
