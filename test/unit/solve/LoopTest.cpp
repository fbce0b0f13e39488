// Loops: the fixpoint, iterations, widening, unrolling, range-for.
#include "test/unit/solve/FactsHarness.h"

#include "gtest/gtest.h"

namespace devicetidy::test {
namespace {

// for (int i = 0; i < BOUND; ++i) { BODY }  return local 1. `n`, local 2, is a parameter.
std::string loop(const std::string &body, const std::string &bound = "load (%1&) : int",
                 const std::string &head = "loop varies=(2)", const std::string &before = "tensor cpu") {
  return R"(
function f params=2
  local 0 n int
  local 1 x at::Tensor
  local 2 i int
  block 0
    %4 = local 1
    %5 = )" +
         before + R"(
    store (%4&, %5)
    %0 = local 2
    %1 = local 0
    %2 = literal int 0 : int
    store (%0&, %2)
    %3 = )" +
         bound + R"(
    %6 = operator < (%2 int, %3 int) : bool
    branch (%6 bool) b1, b2 enters
  block 1 )" +
         head + "\n" + body + R"(
    endstatement
    %0 = local 2
    %1 = load (%0&) : int
    %2 = literal int 1 : int
    %3 = operator + (%1 int, %2 int) : int
    store (%0&, %3)
    endstatement
    %0 = local 2
    %1 = local 0
    %2 = load (%0&) : int
    %3 = )" +
         bound + R"(
    %4 = operator < (%2 int, %3 int) : bool
    branch (%4 bool) b1, b2
  block 2
    endstatement
    %0 = local 1
    return (%0& at::Tensor)
)";
}

// x = zeros on Device(kCUDA, INDEX), where INDEX is a register.
std::string onCuda(const std::string &index) {
  return "    %10 = literal enum 1 : c10::DeviceType\n    %11 = call c10::device (%10 c10::DeviceType, " +
         index + " int text=i) : c10::TensorOptions\n    %12 = call torch::zeros (%11) : at::Tensor @5:1-2\n";
}
const char *const readI = "    %8 = local 2\n    %9 = load (%8&) : int\n";

TEST(Loop, AnUnknownFirstTestEntersTheLoop) {
  const std::string body = "    %0 = local 1\n    %1 = tensor cuda:1\n    store (%0&, %1)";
  EXPECT_EQ(returned(loop(body)), Strings{"cuda:1"});
}

TEST(Loop, AKnownFirstTestIsObeyed) {
  const std::string body = "    %0 = local 1\n    %1 = tensor cuda:1\n    store (%0&, %1)";
  EXPECT_EQ(returned(loop(body, "literal int 0 : int")), Strings{"cpu"});
}

TEST(Loop, TheFixpointEnds) {
  Analysis analysis(loop(readI + onCuda("%9") + "    %0 = local 1\n    store (%0&, %12)"));
  EXPECT_EQ(analysis.returned(), Strings{"cuda:i"});
  EXPECT_TRUE(takeHits().empty());
}

TEST(Loop, IterationsOfACountedLoopAreRunOneByOne) {
  const std::string body = readI + onCuda("%9") + "    %0 = local 1\n    store (%0&, %12)";
  EXPECT_EQ(returned(loop(body, "literal int 3 : int", "loop varies=(2)")), Strings{"cuda:2"});
}

TEST(Loop, ALongLoopIsRunForAnyIteration) {
  const std::string body = readI + onCuda("%9") + "    %0 = local 1\n    store (%0&, %12)";
  EXPECT_EQ(returned(loop(body, "literal int 30 : int", "loop varies=(2)")), Strings{"cuda:i"});
}

// What is made in this iteration and what was made in the iteration before are on two devices.
TEST(Loop, ThisIterationMeetsTheOneBefore) {
  const std::string body = readI + onCuda("%9") +
                           "    %0 = local 1\n    %13 = call at::mm (%0& at::Tensor, %12 at::Tensor) : "
                           "at::Tensor @7:1-2\n    store (%0&, %12)";
  EXPECT_EQ(conflicts(loop(body, "load (%1&) : int", "loop varies=(2)", "opaque : at::Tensor")),
            Strings{"likely mm cuda:i cuda:i"});
}

TEST(Loop, TwoTensorsOfOneIterationAreTogether) {
  const std::string body = readI + onCuda("%9") +
                           "    %0 = local 1\n    store (%0&, %12)\n    %13 = call at::mm (%0& at::Tensor, "
                           "%12 at::Tensor) : at::Tensor @7:1-2";
  EXPECT_EQ(conflicts(loop(body)), Strings{});
}

// x = x moved to another device every iteration: rows never repeat until they are joined.
TEST(Loop, WideningEndsWhatNeverRepeats) {
  const std::string count = "    %0 = local 3\n    %1 = load (%0&) : int\n    %2 = literal int 1 : int\n"
                            "    %9 = operator + (%1 int, %2 int) : int\n    store (%0&, %9)\n";
  std::string facts = loop(count + onCuda("%9") + "    %20 = local 1\n    store (%20&, %12)");
  facts.insert(facts.find("  block 0"), "  local 3 count int\n");
  facts.insert(facts.find("    %4 = local 1"),
               "    %0 = local 3\n    %1 = literal int 0 : int\n    store (%0&, %1)\n");
  Analysis analysis(facts);
  const Strings answers = analysis.returned();
  // The iterations before rows are joined, one by one; then the count is unknown.
  EXPECT_EQ(answers.back(), "cuda:i");
  EXPECT_LE(answers.size(), bounds::visitsBeforeWidening + bounds::rowsPerOutcome + 1);
  EXPECT_LT(analysis.machine.factsRun, 2000u);
}

// i = FIRST; do { if (i COMPARISON NUMBER) x = cuda:1; ++i; } while (i < n);  return x. `n` is a parameter.
std::string movedInIteration(const std::string &first, const std::string &comparison,
                             const std::string &number) {
  return R"(
function f params=1
  local 0 n int
  local 1 x at::Tensor
  local 2 i int
  block 0
    %0 = local 2
    %4 = local 0
    %1 = )" +
         first + R"( : int
    store (%0&, %1)
    %2 = local 1
    %3 = tensor cpu
    store (%2&, %3)
    jump b1
  block 1 loop varies=(2)
    %0 = local 2
    %1 = load (%0&) : int
    %2 = literal int )" +
         number + R"( : int
    %3 = operator ")" +
         comparison + R"(" (%1 int, %2 int) : bool
    branch (%3 bool) b2, b3
  block 2
    %0 = local 1
    %1 = tensor cuda:1
    store (%0&, %1)
    jump b3
  block 3
    endstatement
    %0 = local 2
    %1 = load (%0&) : int
    %2 = literal int 1 : int
    %3 = operator + (%1 int, %2 int) : int
    store (%0&, %3)
    %4 = local 0
    %5 = load (%4&) : int
    %6 = operator < (%3 int, %5 int) : bool
    branch (%6 bool) b1, b4
  block 4
    %0 = local 1
    return (%0& at::Tensor)
)";
}

TEST(Loop, TheFirstIterationIsKnownWhereItIsAskedFor) {
  EXPECT_EQ(returned(movedInIteration("literal int 0", "==", "0")), (Strings{"cuda:1"}));
  EXPECT_EQ(returned(movedInIteration("literal int 1", "==", "0")),
            (Strings{"cpu"})); // past it from the start
  EXPECT_EQ(returned(movedInIteration("literal int 0", ">", "0")), (Strings{"cpu", "cuda:1"}));
}

// The second iteration does not know what the first found.
TEST(Loop, AConditionOfOneIterationIsNotThatOfTheNext) {
  EXPECT_EQ(returned(movedInIteration("load (%4&)", "<", "5")), (Strings{"cpu", "cuda:1"}));
}

TEST(Loop, NestedLoopsEnd) {
  std::string facts = R"(
function f params=1
  local 0 n int
  local 1 i int
  local 2 j int
  local 3 x at::Tensor
  block 0
    %0 = local 1
    %1 = literal int 0 : int
    store (%0&, %1)
    jump b1
  block 1 loop varies=(1)
    %0 = local 2
    %1 = literal int 0 : int
    store (%0&, %1)
    jump b2
  block 2 loop varies=(2)
    %8 = local 2
    %9 = load (%8&) : int
)" + onCuda("%9") + R"(
    %0 = local 3
    store (%0&, %12)
    endstatement
    %0 = opaque : bool
    branch (%0 bool) b2, b3
  block 3
    %0 = opaque : bool
    branch (%0 bool) b1, b4
  block 4
    %0 = local 3
    return (%0& at::Tensor)
)";
  Analysis analysis(facts);
  EXPECT_EQ(analysis.returned(), Strings{"cuda:i"});
  EXPECT_LT(analysis.machine.factsRun, 1000u);
}

// for (auto &t : v) return t;  over a list of `made`.
std::string rangeFor(const std::string &made) {
  return R"(
function f
  local 0 v std::vector<at::Tensor>
  local 1 t at::Tensor ref
  local 2 last at::Tensor
  block 0
    %0 = tensor cuda:0
    %1 = tensor cuda:1
    %9 = local 0
    %2 = )" +
         made + R"(
    store (%9&, %2)
    endstatement
    %0 = local 0
    %1 = call __range_has_next (%0& std::vector<at::Tensor>) : bool
    branch (%1 bool) b1, b2 enters
  block 1 loop
    %0 = local 0
    %1 = call __range_next (%0& std::vector<at::Tensor>) : at::Tensor address
    %2 = load (%1&)
    %3 = local 2
    store (%3&, %2)
    endstatement
    %0 = local 0
    %1 = call __range_has_next (%0& std::vector<at::Tensor>) : bool
    branch (%1 bool) b1, b2
  block 2
    %0 = local 2
    return (%0& at::Tensor)
)";
}

TEST(RangeFor, AKnownListIsRunElementByElement) {
  EXPECT_EQ(returned(rangeFor("aggregate (%0 at::Tensor, %1 at::Tensor) : std::vector<at::Tensor>")),
            Strings{"cuda:1"});
}

TEST(RangeFor, AnEmptyListIsNotEntered) {
  EXPECT_EQ(returned(rangeFor("aggregate : std::vector<at::Tensor>")), Strings{"unknown"});
}

TEST(RangeFor, AListFromOutsideGivesItsElement) {
  const Strings answers = returned(R"(
function f params=1
  local 0 v std::vector<at::Tensor>
  block 0
    %0 = local 0
    %1 = call __range_has_next (%0& std::vector<at::Tensor>) : bool
    branch (%1 bool) b1, b2 enters
  block 1 loop
    %0 = local 0
    %1 = call __range_next (%0& std::vector<at::Tensor>) : at::Tensor address
    return (%1& at::Tensor)
  block 2
    unreachable
)");
  EXPECT_EQ(answers, Strings{"v[i].device()"});
}

} // namespace
} // namespace devicetidy::test
