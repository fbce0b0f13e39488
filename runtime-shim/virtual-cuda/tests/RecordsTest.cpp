// What is written for the launcher. Runs with VIRTUAL_GPU_ERRORS, _TRACE and _REACHED set to a directory.
#include "TestSupport.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

using namespace support;

namespace {

std::vector<std::string> linesOf(const char *kind, pid_t process = getpid()) {
  std::vector<std::string> lines;
  const char *directory = std::getenv("VIRTUAL_GPU_ERRORS");
  std::ifstream file(std::string(directory ? directory : ".") + "/" + kind + "-3-" + std::to_string(process) +
                     ".jsonl");
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

bool has(const std::string &line, const std::string &part) { return line.find(part) != std::string::npos; }

// The last line that has all parts, or "".
std::string find(const std::vector<std::string> &lines, std::initializer_list<const char *> parts) {
  std::string found;
  for (const std::string &line : lines)
    if (std::all_of(parts.begin(), parts.end(), [&](const char *part) { return has(line, part); }))
      found = line;
  return found;
}

const char *const kOwnFrame = "virtual_cuda_tests+0x";

TEST(Records, MixedDevicesNameEveryArgument) {
  auto a = torch::ones({2, 3}).to(gpu1);
  auto b = torch::rand({3, 4});
  std::string text = thrown([&] { a.mm(b.t().t()); });
  std::string record = find(linesOf("errors"), {"\"op\": \"aten::mm\""});
  EXPECT_TRUE(has(record, "\"class\": \"mixed-devices\"")) << record;
  EXPECT_TRUE(has(record, text)) << record;
  EXPECT_TRUE(has(record,
                  "{\"index\": 0, \"name\": \"self\", \"device\": \"cuda:1\", \"shape\": [2, 3], \"made\": "
                  "{\"how\": \"moved\", \"op\": \"aten::to\", \"stack\": [\""))
      << record;
  // A view was made where its bytes were.
  EXPECT_TRUE(has(record,
                  "{\"index\": 1, \"name\": \"mat2\", \"device\": \"cpu\", \"shape\": [3, 4], \"made\": "
                  "{\"how\": \"created\", \"op\": \"aten::rand\", \"stack\": [\""))
      << record;
  EXPECT_TRUE(has(record, kOwnFrame));
  EXPECT_FALSE(has(record, "libtorch"));
}

TEST(Records, ListsGiveOneArgumentPerElement) {
  auto a = torch::ones({2}, on(gpu0));
  EXPECT_NE(thrown([&] { torch::cat({a, torch::ones({2})}); }), "");
  std::string record = find(linesOf("errors"), {"\"op\": \"aten::cat\""});
  EXPECT_TRUE(has(record, "\"element\": 0, \"device\": \"cuda:0\"")) << record;
  EXPECT_TRUE(has(record, "\"element\": 1, \"device\": \"cpu\"")) << record;
}

TEST(Records, ChecksOfComposedOperatorsAreSeen) {
  torch::nn::LSTM lstm(3, 2);
  lstm->to(gpu0);
  auto state = std::make_tuple(torch::zeros({1, 1, 2}), torch::zeros({1, 1, 2}));
  EXPECT_NE(thrown([&] { lstm(torch::ones({1, 1, 3}, on(gpu0)), state); }), "");
  EXPECT_NE(find(linesOf("errors"), {"mixed-devices", "aten::lstm", "are not at the same device"}), "");
  torch::nn::Conv2d convolution(1, 1, 1);
  convolution->to(gpu0);
  EXPECT_NE(thrown([&] { convolution(torch::ones({1, 1, 2, 2})); }), "");
  EXPECT_NE(find(linesOf("errors"), {"mixed-devices", "aten::conv", "should be the same"}), "");
}

TEST(Records, ErrorsOutsideOfOperatorsNameTheirCheck) {
  auto a = torch::nn::Linear(2, 2), b = torch::nn::Linear(2, 2);
  b->to(gpu1);
  auto parameters = a->parameters();
  parameters.push_back(b->weight);
  EXPECT_NE(thrown([&] { torch::nn::utils::parameters_to_vector(parameters); }), "");
  std::string record = find(linesOf("errors"), {"mixed-devices", "two parameters on different devices"});
  EXPECT_TRUE(has(record, "\"op\": \"_check_param_device\", \"args\": []")) << record;
}

TEST(Records, TextsOfOtherChecksAreKnown) {
  float data[3] = {};
  EXPECT_NE(thrown([&] { torch::from_blob(data, {3}, on(gpu0)); }), "");
  EXPECT_NE(find(linesOf("errors"), {"mixed-devices", "resides on host memory"}), "");
  EXPECT_NE(thrown([] { torch::block_diag({torch::ones({2, 2}, on(gpu0)), torch::ones({2, 2})}); }), "");
  EXPECT_NE(find(linesOf("errors"), {"mixed-devices", "must all be on the same device"}), "");
}

struct CpuGradient : torch::autograd::Function<CpuGradient> {
  static torch::Tensor forward(torch::autograd::AutogradContext *, torch::Tensor x) { return x * 2; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0].cpu()};
  }
};

TEST(Records, GradientsOnAnotherDeviceNameTheForwardCall) {
  auto x = torch::ones({3}, leafOn(gpu0));
  auto y = CpuGradient::apply(x);
  EXPECT_NE(thrown([&] { y.sum().backward(); }), "");
  std::string record = find(linesOf("errors"), {"mixed-devices", "returned an invalid gradient"});
  size_t backward = record.find("\"backward\": {\"node\": ");
  ASSERT_NE(backward, std::string::npos) << record;
  EXPECT_TRUE(has(record.substr(backward), "CpuGradient")) << record;
  EXPECT_TRUE(has(record.substr(backward), kOwnFrame)) << record;
}

TEST(Records, ForwardOfACustomFunctionInPythonIsNoBackwardPass) {
  auto x = torch::ones({3}, on(gpu0)), y = torch::ones({3});
  RECORD_FUNCTION("Square", std::vector<c10::IValue>{}); // as Function.apply() of PyTorch's Python half
  EXPECT_NE(thrown([&] { torch::atan2(x, y); }), "");
  std::string record = find(linesOf("errors"), {"mixed-devices", "aten::atan2"});
  EXPECT_TRUE(has(record, kOwnFrame)) << record;
  EXPECT_FALSE(has(record, "\"backward\"")) << record;
}

TEST(Records, ForwardCallsOutliveTheirThread) {
  torch::Tensor loss, factor = torch::ones({3}, on(gpu0));
  std::thread([&] { loss = (torch::ones({3}, leafOn(gpu0)) * factor).sum(); }).join();
  factor.set_data(factor.cpu());
  EXPECT_NE(thrown([&] { loss.backward(); }), "");
  std::string record = find(linesOf("errors"), {"mixed-devices", "MulBackward0"});
  size_t backward = record.find("\"backward\": ");
  ASSERT_NE(backward, std::string::npos) << record;
  EXPECT_TRUE(has(record.substr(backward), kOwnFrame)) << record;
}

long residentMegabytes() {
  std::ifstream file("/proc/self/statm");
  long total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

TEST(Records, EndedThreadsLeaveLittleBehind) {
  auto train = [] { (torch::ones({3}, leafOn(gpu0)) * 2).sum(); };
  std::thread(train).join();
  long before = residentMegabytes();
  for (int i = 0; i < 60; ++i)
    std::thread(train).join();
  EXPECT_LT(residentMegabytes() - before, 60);
}

TEST(Records, MemoryOfTheProgramHasAPlace) {
  static float data[9] = {};
  auto host = torch::from_blob(data, {3, 3});
  EXPECT_NE(thrown([&] { host.mm(torch::ones({3, 3}, on(gpu0))); }), "");
  EXPECT_NE(find(linesOf("errors"),
                 {"\"how\": \"created\", \"op\": \"torch::from_blob\", \"stack\": [\"/", kOwnFrame}),
            "");
}

TEST(Records, CopiesThatAreNotUsedLeaveTheirPlace) {
  auto ids = torch::ones({4, 4});
  for (volatile int i = 0; i < 3; ++i) // not unrolled: that would be three places
    ids.to(gpu0);
  EXPECT_NE(thrown([&] { torch::ones({4, 4}, on(gpu0)).mm(ids.t()); }), "");
  std::string record = find(linesOf("errors"), {"\"copied\": "});
  EXPECT_TRUE(has(record, "\"copied\": [{\"stack\": [\"")) << record;
  EXPECT_FALSE(has(record, "]}, {\"stack\"")) << "one place, once: " << record;
}

TEST(Records, OtherErrorsAreNot) {
  size_t before = linesOf("errors").size();
  auto a = torch::ones({2, 3}, on(gpu0));
  EXPECT_NE(thrown([&] { a.mm(a); }), "");
  EXPECT_EQ(linesOf("errors").size(), before);
}

TEST(Records, OrdinalsAndMemory) {
  EXPECT_NE(thrown([] { torch::ones({1}, torch::Device("cuda:9")); }), "");
  EXPECT_NE(find(linesOf("errors"), {"\"class\": \"invalid-ordinal\"", "cuda:9", "\"op\": \"aten::ones\""}),
            "");
  EXPECT_NE(thrown([] { torch::empty({128 << 20}, on(gpu0).dtype(torch::kByte)); }), "");
  EXPECT_NE(find(linesOf("errors"), {"\"class\": \"out-of-memory\"", "CUDA out of memory"}), "");
}

TEST(Records, LackOfMemoryNamesTheOperatorOfTheGpu) {
  auto big = torch::ones({1, 1, 3000, 3000}, on(gpu1)); // 36 of 64 MB
  auto recordOf = [](const std::function<void()> &call) {
    EXPECT_NE(thrown(call), "");
    return linesOf("errors").back();
  };
  auto expectOp = [&](const char *op, const std::function<void()> &call) {
    const std::string record = recordOf(call);
    EXPECT_TRUE(has(record, "\"class\": \"out-of-memory\"")) << record;
    EXPECT_TRUE(has(record, std::string("\"op\": \"aten::") + op + "\"")) << record;
    EXPECT_TRUE(has(record, "\"device\": \"cuda:1\"")) << record;
    EXPECT_FALSE(has(record, "\"device\": \"cpu\"")) << record;
  };
  expectOp("relu", [&] { big.relu(); });
  expectOp("convolution", [&] { torch::conv2d(big, torch::ones({1, 1, 1, 1}, on(gpu1))); });
  expectOp("native_dropout", [&] { torch::dropout(big, 0.5, true); });
  expectOp("clone", [&] { big.clone(); });
  expectOp("_to_copy", [&] { big.to(torch::kDouble); });
  expectOp("native_layer_norm", [&] { torch::layer_norm(big, {3000}); });
  expectOp("mul", [&] { big * 2; });
  // Of factories, the one that was called.
  EXPECT_TRUE(has(recordOf([] { torch::ones({5000, 5000}, on(gpu1)); }), "\"op\": \"aten::ones\""));
  EXPECT_TRUE(has(recordOf([] { torch::empty({5000, 5000}, on(gpu1)); }), "\"op\": \"aten::empty\""));
}

TEST(Records, TraceHasOperatorsAndCopies) {
  auto a = torch::ones({4, 4}).to(gpu1);
  a.mm(a).to(gpu0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  auto lines = linesOf("trace");
  EXPECT_NE(find(lines, {"\"kind\": \"op\"", "\"op\": \"aten::mm\"", "\"device\": \"cuda:1\"",
                         "\"dur_us\": ", "{\"name\": \"mat2\", \"device\": \"cuda:1\", \"shape\": [4, 4]}"}),
            "");
  EXPECT_NE(
      find(lines, {"\"kind\": \"copy\"", "\"from\": \"cpu\", \"to\": \"cuda:1\", \"bytes\": 64", kOwnFrame}),
      "");
  EXPECT_NE(find(lines, {"\"kind\": \"copy\"", "\"from\": \"cuda:1\", \"to\": \"cuda:0\", \"bytes\": 64"}),
            "");
  EXPECT_EQ(find(lines, {"\"kind\": \"op\"", "aten::copy_", "\"from\""}), "");
  EXPECT_NE(find(lines, {"\"kind\": \"thread\""}), "");
}

TEST(Records, TraceHasTheCopiesOfIndices) {
  auto a = torch::ones({4, 4}, on(gpu1)), index = torch::tensor({0, 2, 3});
  a.index({index});
  a.index_put_({index.slice(0, 0, 2)}, 7.0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  auto lines = linesOf("trace");
  EXPECT_NE(find(lines, {"\"kind\": \"copy\"", "\"op\": \"aten::index\"",
                         "\"from\": \"cpu\", \"to\": \"cuda:1\", \"bytes\": 24", kOwnFrame}),
            "");
  EXPECT_NE(find(lines, {"\"kind\": \"copy\"", "index_put_impl_\"", "\"bytes\": 16"}), "");
}

TEST(Records, UncaughtExceptionsAreKnown) {
  torch::ones({1}, on(gpu0));
  pid_t child = fork();
  if (child == 0)
    std::thread([] { throw std::runtime_error("something else"); }).join();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_NE(find(linesOf("errors", child), {"\"kind\": \"uncaught\"", "something else", kOwnFrame}), "");
}

TEST(Records, ReachedFramesAreWrittenOnce) {
  for (int i = 0; i < 3; ++i)
    torch::ones({1}).add(1);
  auto lines = linesOf("reached");
  ASSERT_FALSE(lines.empty());
  std::set<std::string> frames;
  for (const std::string &line : lines) {
    EXPECT_TRUE(has(line, "{\"kind\": \"reached\", \"frame\": \"/")) << line;
    EXPECT_TRUE(frames.insert(line.substr(0, line.find("\"op\""))).second) << line;
  }
}

TEST(Records, ChildrenWriteTheirOwnFiles) {
  torch::ones({1}, on(gpu0));
  pid_t child = fork();
  if (child == 0) {
    thrown([] { torch::ones({1}, on(gpu0)) + torch::ones({2}); });
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(linesOf("errors", child).size(), 1u);
}

} // namespace
