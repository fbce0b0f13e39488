#include "launch/OuterLauncher.h"
#include "base/FreePort.h"
#include "base/RunError.h"

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

TEST(OuterLauncher, AnyVariableOfAStepMakesASlurmTask) {
  const Environment task = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}};
  for (const auto &[name, value] : Environment{{"SLURM_STEP_NODELIST", "gpu1"},
                                               {"SLURM_STEP_NUM_TASKS", "2"},
                                               {"SLURM_STEP_TASKS_PER_NODE", "2"},
                                               {"SLURM_STEP_ID", "0"}}) {
    Environment environment = task;
    environment[name] = value;
    std::optional<OuterRank> outer = findOuterRank(environment, 1);
    ASSERT_TRUE(outer) << name;
    EXPECT_EQ(outer->who.worldSize, 2) << name;
    EXPECT_EQ(taskWithoutStep(environment), "") << name;
  }
  Environment second = task;
  second["SLURM_PROCID"] = second["SLURM_LOCALID"] = "1";
  ASSERT_TRUE(findOuterRank(second, 1)) << "a batch script has number 0";
  EXPECT_EQ(findOuterRank(second, 1)->who.rank, 1);

  Environment batch = task;
  batch["SLURM_STEP_ID"] = "4294967291"; // the batch script's own step
  EXPECT_FALSE(findOuterRank(batch, 1));
  for (const Environment &environment : {task, batch})
    EXPECT_NE(taskWithoutStep(environment).find("SLURM_NTASKS is 2"), std::string::npos);
  EXPECT_EQ(taskWithoutStep({}), "");
  EXPECT_EQ(taskWithoutStep({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), "");
}

TEST(OuterLauncher, SlurmTasksOnSeveralMachinesNeedAnAddress) {
  Environment environment = {{"SLURM_PROCID", "1"},
                             {"SLURM_NTASKS", "2"},
                             {"SLURM_LOCALID", "0"},
                             {"SLURM_NODEID", "1"},
                             {"SLURM_NNODES", "2"}};
  EXPECT_THROW(findOuterRank(environment, 1), RunError);
  environment["SLURM_JOB_NODELIST"] = "gpu[3-4]";
  EXPECT_EQ(findOuterRank(environment, 1)->where.address, "gpu3");
  environment["MASTER_ADDR"] = "head";
  EXPECT_EQ(findOuterRank(environment, 1)->where.address, "head");
}

TEST(OuterLauncher, Mvapich) {
  std::optional<OuterRank> outer = findOuterRank({{"MV2_COMM_WORLD_RANK", "1"},
                                                  {"MV2_COMM_WORLD_SIZE", "2"},
                                                  {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                                                  {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}},
                                                 1);
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->who.rank, 1);
  EXPECT_EQ(outer->who.localWorldSize, 2);
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
