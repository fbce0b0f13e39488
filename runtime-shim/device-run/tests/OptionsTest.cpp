#include "launch/Options.h"
#include "base/RunError.h"

#include <gtest/gtest.h>

namespace {

using namespace devicerun;

std::string errorOf(const std::vector<std::string> &arguments) {
  try {
    parseOptions(arguments);
  } catch (const RunError &error) {
    EXPECT_EQ(error.exitCode, ExitUsage);
    return error.what();
  }
  return "";
}

TEST(Options, ReadsEveryForm) {
  Options options = parseOptions({"-n4", "--max_restarts=2", "--rdzv_endpoint", "host:29400", "--timeout=1.5",
                                  "--log-dir", "logs", "--", "./train", "-n", "7"});
  EXPECT_EQ(options.rankCount, RankCount::Number);
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.maxRestarts, 2);
  EXPECT_EQ(options.masterAddress, "host");
  EXPECT_EQ(options.masterPort, 29400);
  EXPECT_EQ(options.timeoutSeconds, 1.5);
  EXPECT_EQ(options.logDirectory, "logs");
  EXPECT_EQ(options.command, (std::vector<std::string>{"./train", "-n", "7"}));
}

TEST(Options, ProgramEndsTheOptions) {
  Options options = parseOptions({"-n", "2", "train", "--help"});
  EXPECT_FALSE(options.help);
  EXPECT_EQ(options.command, (std::vector<std::string>{"train", "--help"}));
}

TEST(Options, UnderscoresInValuesStay) {
  EXPECT_EQ(parseOptions({"--log_dir=a_b", "x"}).logDirectory, "a_b");
}

TEST(Options, VirtualGpus) {
  Options options = parseOptions({"--virtual-gpus", "3", "--gpu-memory", "24G", "--isolate", "--trace", "t",
                                  "--findings", "f", "--findings-out", "o", "--nproc-per-node", "gpu", "x"});
  EXPECT_EQ(options.virtualGpus, 3);
  EXPECT_EQ(options.gpuMemory, std::uint64_t{24} << 30);
  EXPECT_TRUE(options.isolate);
  EXPECT_EQ(options.rankCount, RankCount::Gpus);
  EXPECT_EQ(options.findingsOut, "o");
}

TEST(Options, Endpoints) {
  EXPECT_EQ(parseOptions({"--rdzv-endpoint=[fe80::1]:7", "x"}).masterAddress, "fe80::1");
  EXPECT_EQ(parseOptions({"--rdzv-endpoint=[fe80::1]:7", "x"}).masterPort, 7);
  EXPECT_EQ(parseOptions({"--rdzv-endpoint=head", "x"}).masterPort, std::nullopt);
  EXPECT_EQ(parseOptions({"--rdzv-endpoint=[::1]", "x"}).masterAddress, "::1");
  for (const char *wrong : {":7", "host:", "host:x", "host:70000", "[::1"})
    EXPECT_NE(errorOf({std::string("--rdzv-endpoint=") + wrong, "x"}), "") << wrong;
}

TEST(Options, WhatTorchrunTakes) {
  Options options =
      parseOptions({"--nnodes=1:1", "--rdzv_conf=timeout=900", "--monitor-interval", "5", "--tee", "3", "-r",
                    "1", "--role=trainer", "--no_python", "--local-addr=h", "--start-method=spawn",
                    "--standalone", "--nproc-per-node=auto", "./train"});
  EXPECT_EQ(options.nodes, 1);
  EXPECT_EQ(options.role, "trainer");
  EXPECT_EQ(options.rankCount, RankCount::Auto);
  EXPECT_EQ(options.command, std::vector<std::string>{"./train"});
  EXPECT_NE(errorOf({"--nnodes=1:4", "x"}).find("give one number"), std::string::npos);
}

TEST(Options, SeveralMachines) {
  const std::vector<std::string> machines = {"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=head", "x"};
  EXPECT_EQ(parseOptions(machines).masterPort, 29400);
  EXPECT_EQ(parseOptions({"--nnodes=2", "--node-rank=1", "--master-addr=head", "x"}).masterPort, 29500);
  EXPECT_NE(errorOf({"--nnodes=2", "--rdzv-endpoint=head:1", "x"}).find("--node-rank R"), std::string::npos);
}

TEST(Options, ErrorsNameTheArgument) {
  EXPECT_NE(errorOf({"--tarce", "x"}).find("did you mean --trace?"), std::string::npos);
  EXPECT_NE(errorOf({"--nporc", "x"}).find("did you mean --nproc-per-node?"), std::string::npos);
  EXPECT_EQ(errorOf({"--x", "y"}).find("did you mean"), std::string::npos);
  EXPECT_NE(errorOf({"--trace"}).find("--trace needs a value: --trace FILE"), std::string::npos);
  EXPECT_NE(errorOf({"--trace=", "x"}).find("--trace needs a value"), std::string::npos);
  EXPECT_NE(errorOf({"-n", "0", "x"}).find("from 1"), std::string::npos);
  EXPECT_NE(errorOf({"--virtual-gpus", "65", "x"}).find("from 0 to 64"), std::string::npos);
  EXPECT_NE(errorOf({"--nproc-per-node=gpu", "x"}).find("--virtual-gpus"), std::string::npos);
  EXPECT_NE(errorOf({"--nnodes", "2", "--rdzv-endpoint", "h:0", "x"}).find("--rdzv-endpoint"),
            std::string::npos);
  EXPECT_NE(errorOf({"--findings-out", "o", "x"}).find("needs --findings"), std::string::npos);
  EXPECT_NE(errorOf({"--rdzv-backend", "etcd", "x"}).find("etcd"), std::string::npos);
  EXPECT_NE(errorOf({}).find("no program"), std::string::npos);
}

TEST(Options, HelpNeedsNoProgramAndNamesEveryAdvertisedOption) {
  EXPECT_TRUE(parseOptions({"--help"}).help);
  EXPECT_TRUE(parseOptions({"--version"}).version);
  for (const char *name : {"--nproc-per-node", "--nnodes", "--trace", "--findings", "--timeout", "--isolate"})
    EXPECT_NE(helpText().find(name), std::string::npos) << name;
}

} // namespace
