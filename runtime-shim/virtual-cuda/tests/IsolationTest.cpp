// Host code that touches device memory under VIRTUAL_GPU_ISOLATE=1; the process ends, so these are death
// tests.
#include "TestSupport.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

using namespace support;

namespace {

struct Isolation : testing::Test {
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const char *setting = std::getenv("VIRTUAL_GPU_ISOLATE");
    if (!setting || std::string(setting) != "1")
      GTEST_SKIP() << "needs VIRTUAL_GPU_ISOLATE=1";
  }
};

// Other handlers may print what they like.
struct NotOurs : testing::MatcherInterface<const std::string &> {
  bool MatchAndExplain(const std::string &text, testing::MatchResultListener *) const override {
    return text.find("virtual-cuda") == std::string::npos;
  }
  void DescribeTo(std::ostream *out) const override { *out << "says nothing of device memory"; }
};

TEST_F(Isolation, ReadingFaults) {
  auto tensor = torch::ones({10}, on(gpu1));
  EXPECT_EXIT(std::printf("%f", tensor.data_ptr<float>()[2]), testing::KilledBySignal(SIGSEGV),
              "host code used memory of a tensor on cuda:1: byte 8 of 40 bytes, created by aten::ones in");
}

TEST_F(Isolation, WritingFaults) {
  auto tensor = torch::ones({10}).to(gpu0);
  float *data = tensor.data_ptr<float>();
  EXPECT_EXIT(data[9] = 3, testing::KilledBySignal(SIGSEGV),
              "tensor on cuda:0: byte 36 of 40 bytes, moved there by aten::to in");
}

TEST_F(Isolation, ResultsOfOperatorsAreProtected) {
  auto tensor = torch::ones({10}, on(gpu0)).mul(2).view({5, 2})[3];
  EXPECT_EXIT(*tensor.data_ptr<float>() = 3, testing::KilledBySignal(SIGSEGV),
              "tensor on cuda:0: byte 24 of 40");
}

TEST_F(Isolation, FreedMemoryIsProtected) {
  auto tensor = torch::ones({10}, on(gpu0));
  float *data = tensor.data_ptr<float>();
  tensor = torch::Tensor();
  EXPECT_EXIT(std::printf("%f", *data), testing::KilledBySignal(SIGSEGV), "device memory that is not in use");
}

// A handler as crash reporters install them: it says something and ends the program the usual way.
void reportCrash(int number) {
  static const char text[] = "the program's handler\n";
  if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
    _exit(1);
  std::signal(number, SIG_DFL);
}

struct sigaction handlerBefore;

void restoreAndReturn(int number) { sigaction(number, &handlerBefore, nullptr); }

TEST_F(Isolation, HandlersOfTheProgramComeAfterwards) {
  auto first = torch::ones({10}, on(gpu1));
  auto fault = [](void (*handler)(int)) {
    struct sigaction own{};
    own.sa_handler = handler;
    sigaction(SIGSEGV, &own, &handlerBefore);
    auto tensor = torch::ones({10}, on(gpu1));
    std::printf("%f", tensor.data_ptr<float>()[2]);
  };
  EXPECT_EXIT(fault(&reportCrash), testing::KilledBySignal(SIGSEGV),
              "tensor on cuda:1: byte 8 of 40 bytes(.|\n)*the program's handler");
  EXPECT_EXIT(fault(&restoreAndReturn), testing::KilledBySignal(SIGSEGV),
              "tensor on cuda:1: byte 8 of 40 bytes");
}

TEST_F(Isolation, OtherFaultsGoTheirWay) {
  torch::ones({1}, on(gpu0));
  void *page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EXIT(*static_cast<volatile char *>(page) = 1, testing::KilledBySignal(SIGSEGV),
              testing::MakeMatcher(new NotOurs()));
  EXPECT_EXIT(raise(SIGSEGV), testing::KilledBySignal(SIGSEGV), testing::MakeMatcher(new NotOurs()));
}

TEST_F(Isolation, MemoryIsReused) {
  // Far more than the machine has, one piece after the other.
  for (int i = 0; i < 64; ++i)
    torch::empty({int64_t{1} << 30}, on(gpu0).dtype(torch::kByte)).slice(0, 0, 4096).fill_(i);
  auto kept = torch::arange(1000, on(gpu1));
  EXPECT_EQ(kept.cpu().sum().item<int64_t>(), 499500);
}

} // namespace
