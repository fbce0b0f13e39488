// Operations that only a device waits for, as with NCCL: what the watching thread says of those that never
// end.
#include "comm/Liveness.h"

#include <device_shim/Error.h>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <atomic>
#include <thread>

using namespace device_shim;
using device_shim::detail::Liveness;
using device_shim::detail::ProcessIdentity;
using device_shim::detail::UnderWay;
using std::chrono::milliseconds;

namespace {

// Two ranks of this process at one store.
struct TwoRanks {
  explicit TwoRanks(milliseconds collectiveTimeout) {
    for (int rank = 0; rank < 2; ++rank) {
      const auto text = ProcessIdentity::own().text();
      store->set(Liveness::identityKey(rank), std::vector<uint8_t>(text.begin(), text.end()));
    }
    for (int rank = 0; rank < 2; ++rank) {
      Liveness::Settings settings;
      settings.rank = rank;
      settings.size = 2;
      settings.timeout = std::chrono::seconds(20);
      settings.grace = std::chrono::seconds(60); // the process that would be ended is this one
      settings.collectiveTimeout = collectiveTimeout;
      ranks.push_back(std::make_unique<Liveness>(store, settings));
    }
  }
  ~TwoRanks() {
    for (auto &rank : ranks)
      rank->leave(/*failed=*/false);
  }

  // What `rank` is told within some seconds, "" for nothing.
  std::string told(int rank, milliseconds within) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (!ranks[rank]->hasFailed() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(milliseconds(20));
    try {
      ranks[rank]->throwIfFailed("step");
    } catch (const PeerError &error) {
      return error.what();
    }
    return "";
  }

  // As Backing and Operation do it.
  void begin(int rank, const std::string &operation, std::function<bool()> isOver) {
    ranks[rank]->began(0, 1);
    ranks[rank]->watchDevice(operation, ranks[rank]->operationsBegun(), std::move(isOver));
  }

  c10::intrusive_ptr<c10d::HashStore> store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::unique_ptr<Liveness>> ranks;
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(UnderWay, ForgetsWhatIsOver) {
  UnderWay underWay;
  EXPECT_FALSE(underWay.look());
  std::atomic<int> over{0};
  for (int number = 1; number <= 3; ++number)
    underWay.add("sum", number, [&over, number] { return over >= number; });
  EXPECT_EQ(underWay.look()->oldest.number, 1);
  over = 2;
  EXPECT_EQ(underWay.look()->oldest.number, 3);
  EXPECT_EQ(underWay.look()->newest.number, 3);
  over = 3;
  EXPECT_FALSE(underWay.look());
}

TEST(UnderWay, RankThatLeftIsNamed) {
  TwoRanks two(std::chrono::minutes(5));
  const auto never = [] { return false; };
  two.begin(0, "all_reduce", never);
  two.begin(1, "all_reduce", never);
  two.ranks[0]->announceLeaving();
  // Rank 0 has come to all operations of rank 1, however long these take.
  EXPECT_EQ(two.told(1, milliseconds(2500)), "");
  two.begin(1, "broadcast", never);
  const auto told = two.told(1, std::chrono::seconds(20));
  EXPECT_TRUE(contains(told, "rank 0 has finished and left the job, which rank 1 still needs in 'broadcast'"))
      << told;
  EXPECT_TRUE(contains(told, "equally many batches")) << told;
  EXPECT_FALSE(contains(told, "failed first")) << told;
  EXPECT_TRUE(contains(two.told(0, std::chrono::seconds(20)), "rank 0 has finished")) << "both are told";
}

TEST(UnderWay, TimeoutIsToldToAll) {
  TwoRanks two(std::chrono::seconds(2));
  two.begin(0, "all_reduce", [] { return true; });
  two.begin(1, "all_reduce", [] { return true; });
  two.begin(1, "all_gather", [] { return false; });
  for (const int rank : {1, 0}) {
    const auto told = two.told(rank, std::chrono::seconds(20));
    EXPECT_TRUE(contains(told, "rank 1 waited 2.0 s for the device to end 'all_gather'")) << told;
    EXPECT_TRUE(contains(told, "operations begun: 1 by rank 0, 2 by rank 1")) << told;
  }
}
