// Records, the explanation of an error, and the merged trace.
#include "base/RunError.h"
#include "records/ErrorReport.h"
#include "records/MemoryReport.h"
#include "records/Records.h"
#include "records/TraceMerge.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
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
  // A scalar in a 0-dim tensor may be on the CPU.
  ErrorRecord scalar = errorOn({"cpu", "cpu", "cuda:1"});
  scalar.arguments[0].shape = "[]";
  EXPECT_EQ(findOddArgument(scalar)->index, 1U);
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

std::string explained(const ErrorRecord &error) {
  FrameResolver resolver;
  return explainError(error, resolver);
}

TEST(ErrorReport, EveryMisplacedArgumentIsNamed) {
  ErrorRecord error = errorOn({"cpu", "cuda:1", "cpu", "cpu"});
  const char *const names[] = {"self", "mat1", "mat2", "scale"};
  for (std::size_t i = 0; i < 4; ++i)
    error.arguments[i].name = names[i];
  error.arguments[3].shape = "[]";
  error.arguments[0].made = error.arguments[2].made = {"moved", "aten::to", {"/no/such/net.cpp:9 main"}};
  error.stack = {"/no/such/net.cpp:12 main"};
  EXPECT_NE(explained(error).find("change /no/such/net.cpp:9: move them to cuda:1; or /no/such/net.cpp:12: "
                                  "move 'self' and 'mat2' to cuda:1, where 'mat1' is"),
            std::string::npos)
      << explained(error);
  error.arguments[2].made = {"created", "aten::ones", {"/no/such/net.cpp:4 main"}};
  EXPECT_NE(explained(error).find("change /no/such/net.cpp:4: create 'mat2' on cuda:1; /no/such/net.cpp:9: "
                                  "move 'self' to cuda:1; or /no/such/net.cpp:12"),
            std::string::npos)
      << explained(error);
}

TEST(ErrorReport, WhatIsWrittenInPlaceStays) {
  ErrorRecord error = errorOn({"cpu", "cuda:0"});
  error.arguments[0].name = "self";
  error.arguments[1].name = "other";
  error.arguments[0].made = {"created", "aten::zeros", {"/no/such/net.py:9 main"}};
  error.stack = {"/no/such/net.py:12 main"};
  error.op = "aten::mul_";
  EXPECT_NE(
      explained(error).find("change /no/such/net.py:9: create it on cuda:0; or /no/such/net.py:12: move "
                            "'other' to cpu, where 'self' is"),
      std::string::npos)
      << explained(error);
  error.op = "aten::mul";
  EXPECT_NE(explained(error).find("move 'self' to cuda:0, where 'other' is"), std::string::npos)
      << explained(error);
}

TEST(ErrorReport, TheProgramsOwnLineIsShownBehindThoseOfPackages) {
  ErrorRecord error = errorOn({"cpu", "cuda:0"});
  for (int i = 1; i <= 7; ++i)
    error.stack.push_back("/venv/lib/python3.11/site-packages/net/a.py:" + std::to_string(i) + " f");
  EXPECT_EQ(explained(error).find("..."), std::string::npos) << explained(error);
  error.stack.push_back("/no/such/train.py:5 main");
  error.stack.push_back("/no/such/train.py:9 <module>");
  EXPECT_NE(explained(error).find("a.py:5\n    ... called from /no/such/train.py:5\n"), std::string::npos)
      << explained(error);
  error.stack.erase(error.stack.begin(), error.stack.begin() + 4);
  EXPECT_NE(explained(error).find("called from /no/such/train.py:5\n    called from /no/such/train.py:9\n"),
            std::string::npos)
      << explained(error);
}

TEST(ErrorReport, LackOfMemoryMovesNothing) {
  ErrorRecord error = errorOn({"cuda:0", "cpu"});
  error.errorClass = "out-of-memory";
  error.stack = {"/no/such/net.cpp:12 main"};
  EXPECT_EQ(explained(error).find("change"), std::string::npos);
}

TEST(ErrorReport, OtherErrorsSayWhatToChange) {
  ErrorRecord error = errorOn({"cuda:1", "cuda:0"});
  error.stack = {"/no/such/net.cpp:12 main"};
  for (auto [text, change] :
       {std::pair{"Expected a 'cuda' device type for generator but found 'cpu'", "leave the generator out"},
        {"cannot pin 'CUDAFloatType' only dense CPU tensors can be pinned", "leave out pin_memory()"},
        {"'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:1 Long tensor",
         "give 'lengths' on the CPU ('.cpu()')"}}) {
    error.text = text;
    EXPECT_NE(explained(error).find(std::string("change /no/such/net.cpp:12: ") + change), std::string::npos)
        << explained(error);
  }
}

TEST(ErrorReport, OrdinalsSayWhichDevicesThereAre) {
  ErrorRecord error;
  error.errorClass = "invalid-ordinal";
  error.text = "CUDA error: invalid device ordinal\nthe program asked for cuda:2, but there are 2";
  EXPECT_NE(explained(error).find("\n  the program asked for cuda:2"), std::string::npos);
  error.stack = {"/no/such/net.cpp:12 main"};
  EXPECT_NE(explained(error).find("net.cpp:12: use a device that exists, or run with --virtual-gpus 3"),
            std::string::npos)
      << explained(error);
}

TEST(ErrorReport, MemoryOfTheProgramIsMoved) {
  ErrorRecord error = errorOn({"cuda:0", "cpu"});
  error.arguments[1].made = {"created", "torch::from_blob", {"/no/such/net.cpp:9 main"}};
  error.stack = {"/no/such/net.cpp:12 main"};
  EXPECT_NE(explained(error).find("change /no/such/net.cpp:9: move it to cuda:0"), std::string::npos);
  error.arguments.clear();
  error.text = "The specified pointer resides on host memory and is not registered";
  EXPECT_NE(explained(error).find("change /no/such/net.cpp:12: make the tensor without a device"),
            std::string::npos);
}

TEST(ErrorReport, GradientsOnTheWrongDevice) {
  ErrorRecord error;
  error.text = "invalid gradient at index 0 - expected device cuda:0 but got cpu";
  error.stack = {"/no/such/net.cpp:12 main"};
  EXPECT_NE(explained(error).find("change /no/such/net.cpp:12: give backward() a gradient on cuda:0"),
            std::string::npos);
  error.text = "Function net::Square returned an " + error.text;
  error.backwardNode = "torch::autograd::CppNode<net::Square>";
  error.forwardStack = {"/no/such/net.cpp:7 forward"};
  std::string text = explained(error);
  EXPECT_NE(text.find("in net::Square: the gradient of the call at /no/such/net.cpp:7"), std::string::npos)
      << text;
  EXPECT_NE(text.find("change backward() of net::Square: return gradients on cuda:0"), std::string::npos);
}

TEST(ErrorReport, ErrorsThatWereCaught) {
  ErrorRecord error = errorOn({"cuda:0", "cpu"});
  error.text = "Expected all tensors";
  error.source = {1, 10};
  auto uncaught = [](const char *text) { return std::vector<UncaughtException>{{{1, 10}, text, 0}}; };
  EXPECT_EQ(otherEnd(error, {}, SIGABRT), "");
  EXPECT_EQ(otherEnd(error, uncaught("worker: Expected all tensors\nmore"), SIGABRT), "");
  EXPECT_EQ(otherEnd(error, uncaught("no such file\nmore"), SIGABRT), "no such file");
  EXPECT_NE(otherEnd(error, {}, SIGSEGV).find("SIGSEGV"), std::string::npos);
  error.errorClass = "host-access";
  EXPECT_EQ(otherEnd(error, {}, SIGSEGV), "");
}

TEST_F(RecordFolder, MemoryOfRanksThatMeet) {
  write("errors-0-10.jsonl", "{\"kind\":\"memory\",\"device\":\"cuda:0\",\"peak\":2048}\n");
  write("errors-1-11.jsonl", "{\"kind\":\"memory\",\"device\":\"cuda:0\",\"peak\":1024}\n"
                             "{\"kind\":\"memory\",\"device\":\"cuda:1\",\"peak\":512}\n");
  EXPECT_EQ(
      describeMemory(readMemoryPeaks(folder), 2560),
      "  rank 0: at most 2.0 KiB of 2.5 KiB on cuda:0\n"
      "  rank 1: at most 1.0 KiB of 2.5 KiB on cuda:0\n"
      "  rank 1: at most 512 B of 2.5 KiB on cuda:1\n"
      "  2 ranks shared cuda:0: together up to 3.0 KiB, more than the GPU has; the limit is per rank\n");
  EXPECT_EQ(describeMemory({}, 1), "");
}

TEST_F(RecordFolder, MemoryOnDevicesOfOtherRanks) {
  const std::string place = "\"largest\":1024,\"stack\":[\"/h/train.py:7 load\"]";
  write("errors-2-10.jsonl", "{\"kind\":\"memory\",\"device\":\"cuda:0\",\"peak\":2048}\n");
  write("errors-3-11.jsonl", "{\"kind\":\"memory\",\"device\":\"cuda:0\",\"peak\":1536," + place + "}\n" +
                                 "{\"kind\":\"memory\",\"device\":\"cuda:1\",\"peak\":512}\n" +
                                 "{\"kind\":\"memory\",\"device\":\"cuda:2\",\"peak\":512," + place + "}\n");
  FrameResolver resolver;
  EXPECT_EQ(describeForeignMemory(readMemoryPeaks(folder), /*firstRank=*/2, resolver),
            "  rank 3 allocated 1.5 KiB on cuda:0, the device of rank 2, most at /h/train.py:7\n");
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
  EXPECT_EQ(tracks.size(), 3U); // two threads of rank 0, one of rank 1
  EXPECT_EQ(latest, 100.0);
}

} // namespace
