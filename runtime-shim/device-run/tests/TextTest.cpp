#include "base/Text.h"

#include <gtest/gtest.h>

#include <csignal>

namespace {

using namespace devicerun;

TEST(Text, Bytes) {
  EXPECT_EQ(parseBytes("24G"), std::uint64_t{24} << 30);
  EXPECT_EQ(parseBytes("512M"), std::uint64_t{512} << 20);
  EXPECT_EQ(parseBytes("1.5KiB"), 1536U);
  EXPECT_EQ(parseBytes("2kb"), 2048U);
  EXPECT_EQ(parseBytes("77"), 77U);
  EXPECT_EQ(parseBytes("77B"), 77U);
  EXPECT_EQ(parseBytes("1T"), std::uint64_t{1} << 40);
  for (const char *wrong :
       {"", "G", "-1G", "0", "1X", "1GX", "1..5G", "1 G", "99999999999999T", "0x10", "1BB"})
    EXPECT_FALSE(parseBytes(wrong)) << wrong;
}

TEST(Text, FormatsBytes) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(std::uint64_t{3} << 40), "3.0 TiB");
  EXPECT_EQ(formatBytes(~std::uint64_t{0}), "16777216.0 TiB");
}

TEST(Text, Numbers) {
  EXPECT_EQ(parseInteger("-12"), -12);
  for (const char *wrong : {"", "1a", " 1", "1.5", "99999999999999999999"})
    EXPECT_FALSE(parseInteger(wrong)) << wrong;
  EXPECT_EQ(parseSeconds("2.5"), 2.5);
  for (const char *wrong : {"0", "-1", "inf", "nan", "1e3", "99999999999", "."})
    EXPECT_FALSE(parseSeconds(wrong)) << wrong;
}

TEST(Text, Signals) {
  EXPECT_EQ(describeSignal(SIGKILL), "SIGKILL (Killed)");
  EXPECT_EQ(describeSignal(200), "signal 200");
}

TEST(Text, NearestFindsSlipsOnly) {
  const std::vector<std::string> names = {"--nnodes", "--node-rank", "--nproc-per-node", "--trace",
                                          "--timeout"};
  EXPECT_EQ(nearestTo("--tarce", names), "--trace");
  EXPECT_EQ(nearestTo("--nodes", names), "--nnodes");
  EXPECT_EQ(nearestTo("--nporc", names), "--nproc-per-node");
  EXPECT_EQ(nearestTo("--timeuot", names), "--timeout");
  EXPECT_EQ(nearestTo("--verbose", names), std::nullopt);
  EXPECT_EQ(nearestTo("--trace", {}), std::nullopt);
}

TEST(Text, SplitsAndTrims) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(trimmed(" \t a b \n"), "a b");
  EXPECT_EQ(trimmed("  "), "");
}

} // namespace
