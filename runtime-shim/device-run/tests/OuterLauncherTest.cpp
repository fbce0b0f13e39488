#include "OuterLauncher.h"
#include "FreePort.h"
#include "RunError.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace {

using namespace devicerun;

TEST(OuterLauncher, NodeLists) {
  EXPECT_EQ(firstHost("gpu[03-07,9],login"), "gpu03");
  EXPECT_EQ(firstHost("login,gpu[1-2]"), "login");
  EXPECT_EQ(firstHost("single"), "single");
  EXPECT_EQ(firstHost("rack[1-2]node[3-4]"), "rack1node3");
  EXPECT_EQ(firstHost("n[5],m"), "n5");
  EXPECT_EQ(firstHost("broken[1-"), "broken[1-");
}

TEST(OuterLauncher, TasksPerNode) {
  EXPECT_EQ(tasksOnNode("2(x3),1", 0), 2);
  EXPECT_EQ(tasksOnNode("2(x3),1", 2), 2);
  EXPECT_EQ(tasksOnNode("2(x3),1", 3), 1);
  EXPECT_EQ(tasksOnNode("2(x3),1", 4), 0);
  EXPECT_EQ(tasksOnNode("", 0), 0);
}

TEST(OuterLauncher, NothingAround) {
  EXPECT_FALSE(findOuterRank({}, 1));
  EXPECT_FALSE(findOuterRank({{"RANK", "0"}}, 1)) << "WORLD_SIZE is what makes it a launcher";
  EXPECT_FALSE(findOuterRank({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, 1)) << "a batch script";
}

TEST(OuterLauncher, OpenMpiOnSeveralMachinesNeedsAnAddress) {
  Environment environment = {{"OMPI_COMM_WORLD_RANK", "5"},
                             {"OMPI_COMM_WORLD_SIZE", "8"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_THROW(findOuterRank(environment, 1), RunError);
  environment["MASTER_ADDR"] = "head";
  EXPECT_THROW(findOuterRank(environment, 1), RunError) << "nothing gives all machines the same port";
  environment["MASTER_PORT"] = "4711";
  std::optional<OuterRank> outer = findOuterRank(environment, 1);
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->who.nodeRank, 1);
  EXPECT_EQ(outer->who.nodes, 2);
  EXPECT_EQ(outer->where.address, "head");
  environment.erase("MASTER_PORT");
  environment["PMIX_NAMESPACE"] = "123";
  EXPECT_EQ(findOuterRank(environment, 1)->where.port, findOuterRank(environment, 2)->where.port);
}

TEST(OuterLauncher, PortsFollowFromTheJob) {
  auto portOf = [](const char *id, int parent) {
    return findOuterRank({{"OMPI_COMM_WORLD_RANK", "0"},
                          {"OMPI_COMM_WORLD_SIZE", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                          {"PMIX_NAMESPACE", id}},
                         parent)
        ->where.port;
  };
  EXPECT_EQ(portOf("123", 1), portOf("123", 2));
  EXPECT_NE(portOf("123", 1), portOf("124", 1));
  EXPECT_NE(portOf("", 1), portOf("", 2)) << "without an id the parent tells jobs apart";
}

TEST(FreePort, ReservationsDoNotCollide) {
  std::vector<std::unique_ptr<PortReservation>> held;
  std::set<int> ports;
  for (int i = 0; i < 50; ++i) {
    held.push_back(std::make_unique<PortReservation>());
    ports.insert(held.back()->port());
  }
  EXPECT_EQ(ports.size(), held.size());
  EXPECT_GE(*ports.begin(), 10000);
  EXPECT_EQ(ports.count(29500), 0U);
}

} // namespace
