// Records, the explanation of an error, and the merged trace.
#include "ErrorReport.h"
#include "Records.h"
#include "RunError.h"
#include "TraceMerge.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <set>

#include <unistd.h>

namespace {

using namespace devicerun;
namespace fs = std::filesystem;

class RecordFolder : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::path(testing::TempDir()) / ("records-" + std::to_string(getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  void write(const std::string &name, const std::string &text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }

  fs::path folder;
};

ErrorRecord errorOn(const std::vector<std::string> &devices) {
  ErrorRecord error;
  for (const std::string &device : devices) {
    ErrorArgument argument;
    argument.device = device;
    error.arguments.push_back(argument);
  }
  return error;
}

TEST_F(RecordFolder, SkipsWhatItDoesNotUnderstand) {
  write("errors-1-10.jsonl",
        "not json\n[1]\n{\"kind\": \"other\"}\n"
        "{\"kind\": \"error\", \"error\": \"later\", \"ts_us\": 9, \"args\": 3, \"new\": {}}\n"
        "{\"kind\": \"error\", \"error\": \"cut off");
  write("errors-0-11.jsonl",
        "{\"kind\": \"error\", \"error\": \"earlier\", \"ts_us\": 5, \"args\": "
        "[{\"index\": 2, \"device\": \"cpu\", \"shape\": [8, 4], \"made\": \"a.cpp:3 f\"}, 7]}\n");
  write("errors-x-11.jsonl", "{\"kind\": \"error\"}\n");
  write("errors.jsonl", "{\"kind\": \"error\"}\n");
  std::vector<ErrorRecord> errors = readErrors(folder);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].text, "earlier");
  ASSERT_EQ(errors[0].arguments.size(), 1U);
  EXPECT_EQ(errors[0].arguments[0].shape, "[8, 4]");
  EXPECT_EQ(errors[0].arguments[0].made.stack, std::vector<std::string>{"a.cpp:3 f"});
  EXPECT_EQ(errors[1].source.rank, 1);
  EXPECT_EQ(errors[1].source.pid, 10);
  EXPECT_TRUE(readErrors(folder / "missing").empty());
}

TEST(ErrorReport, OddArgument) {
  EXPECT_FALSE(findOddArgument(errorOn({"cuda:0", "cuda:0"})));
  EXPECT_FALSE(findOddArgument(errorOn({})));
  // The CPU tensor moves, also when it comes first or there are several.
  EXPECT_EQ(findOddArgument(errorOn({"cpu", "cuda:1"}))->index, 0U);
  EXPECT_EQ(findOddArgument(errorOn({"cpu", "cuda:1"}))->expected, "cuda:1");
  EXPECT_EQ(findOddArgument(errorOn({"cpu", "cpu", "cuda:1"}))->index, 0U);
  // Among GPUs the majority stays, else the first.
  EXPECT_EQ(findOddArgument(errorOn({"cuda:1", "cuda:0", "cuda:0"}))->index, 0U);
  EXPECT_EQ(findOddArgument(errorOn({"cuda:1", "cuda:0"}))->index, 1U);
  EXPECT_EQ(findOddArgument(errorOn({"cuda:1", "cuda:0"}))->expected, "cuda:1");
  EXPECT_EQ(findOddArgument(errorOn({"cuda:1", "cuda:0", "cpu"}))->index, 2U);
}

TEST(ErrorReport, SaysWhatItKnows) {
  ErrorRecord error = errorOn({"cuda:0", "cpu"});
  error.text = "Expected all tensors\nbacktrace";
  error.op = "aten::mm";
  error.arguments[1].name = "mat2";
  error.arguments[1].made = {"created", "aten::randn", {"/no/such/net.cpp:9 main"}};
  error.stack = {"/usr/include/torch/x.h:1 f", "/no/such/net.cpp:12 main"};
  FrameResolver resolver;
  std::string text = explainError(error, resolver);
  EXPECT_NE(text.find("in aten::mm at /no/such/net.cpp:12"), std::string::npos) << text;
  EXPECT_NE(text.find("created by aten::randn at /no/such/net.cpp:9"), std::string::npos) << text;
  EXPECT_NE(text.find("change /no/such/net.cpp:9: create it on cuda:0"), std::string::npos) << text;
  EXPECT_EQ(text.find("backtrace"), std::string::npos) << text;
  error.stack.clear();
  error.arguments[1].made = {};
  EXPECT_NE(explainError(error, resolver).find("move 'mat2' to cuda:0"), std::string::npos);
}

TEST_F(RecordFolder, MergesAnEmptyTrace) {
  FrameResolver resolver;
  fs::path file = folder / "out.json";
  TraceSummary summary = mergeTrace(folder, file, resolver);
  EXPECT_EQ(summary.operators, 0U);
  EXPECT_EQ(describeTraffic(summary), "  no tensor was copied between devices\n");
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(file))["traceEvents"].empty());
  EXPECT_THROW(mergeTrace(folder, folder / "missing" / "out.json", resolver), RunError);
}

TEST_F(RecordFolder, MergesThreadsAndRanks) {
  write("trace-0-10.jsonl",
        "{\"kind\":\"op\",\"op\":\"a\",\"ts_us\":200,\"dur_us\":1,\"tid\":1,\"device\":\"cuda:0\"}\n"
        "{\"kind\":\"op\",\"op\":\"b\",\"ts_us\":150,\"dur_us\":1,\"tid\":2,\"device\":\"cuda:0\"}\n");
  write("trace-1-10.jsonl", "{\"kind\":\"copy\",\"op\":\"c\",\"ts_us\":100,\"dur_us\":1,\"tid\":1,\"from\":"
                            "\"cuda:0\",\"to\":\"cpu\","
                            "\"bytes\":10,\"stack\":[\"/h/a.cpp:3 f(int)\"]}\n");
  FrameResolver resolver;
  fs::path file = folder / "out.json";
  TraceSummary summary = mergeTrace(folder, file, resolver);
  EXPECT_EQ(summary.operators, 2U);
  EXPECT_EQ(summary.sites.at({"cuda:0", "cpu"}).at("/h/a.cpp:3 f").bytes, 10U);
  std::set<std::pair<int, int>> tracks;
  double latest = 0;
  const nlohmann::json trace = nlohmann::json::parse(std::ifstream(file));
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      tracks.emplace(event["pid"].get<int>(), event["tid"].get<int>());
      latest = std::max(latest, event["ts"].get<double>());
    }
  EXPECT_EQ(tracks.size(), 3U);
  EXPECT_EQ(latest, 100.0);
}

} // namespace
