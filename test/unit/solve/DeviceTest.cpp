// Devices: factories, moves, guards and the current device, what a discarded move does.
#include "test/unit/solve/FactsHarness.h"

#include "gtest/gtest.h"

namespace devicetidy::test {
namespace {

TEST(Device, AFactoryWithoutOptionsMakesItOnTheCpu) {
  EXPECT_EQ(
      returned(
          "function f\n  block 0\n    %0 = call torch::zeros : at::Tensor\n    return (%0 at::Tensor)\n"),
      Strings{"cpu"});
}

TEST(Device, LikeTakesTheDeviceOfItsModel) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = call torch::zeros_like (%0 at::Tensor) : at::Tensor
    return (%1 at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Device, ToAnotherTensorsDevice) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = tensor cpu
    %2 = call at::Tensor::device (%0 at::Tensor) : c10::Device object
    %3 = call at::Tensor::to (%1 at::Tensor, %2 c10::Device) : at::Tensor object
    return (%3 at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Device, ToADtypeKeepsTheDevice) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = literal int 6 : c10::ScalarType
    %2 = call at::Tensor::to (%0 at::Tensor, %1 c10::ScalarType) : at::Tensor object
    return (%2 at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Device, AResultIsWhereItsOperandsAre) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = tensor cuda:1
    %2 = call at::mm (%0 at::Tensor, %1 at::Tensor) : at::Tensor @3:1-2
    return (%2 at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Device, AParameterChoosesIt) {
  EXPECT_EQ(conflicts(R"(
function f params=1
  local 0 device c10::Device
  block 0
    %0 = local 0
    %1 = tensor cpu
    %2 = tensor cpu
    %3 = call at::Tensor::to (%1 at::Tensor, %0& c10::Device) : at::Tensor object
    %4 = call at::mm (%3 at::Tensor, %2 at::Tensor) : at::Tensor @9:1-2
    return
)"),
            Strings{"likely mm device cpu"});
}

// Inside the guard's scope `cuda` means device 1; STEPS follow with the guard in force.
std::string underGuard(const std::string &steps) {
  return R"(
function f
  local 0 guard c10::cuda::CUDAGuard
  block 0
    declare 0
    %0 = local 0
    %1 = literal int 1 : int
    construct c10::cuda::CUDAGuard::CUDAGuard (%0& c10::cuda::CUDAGuard, %1 int) : c10::cuda::CUDAGuard
    endstatement
)" + steps;
}

TEST(Guard, SetsTheCurrentDevice) {
  EXPECT_EQ(returned(underGuard("    %2 = tensor cuda\n    return (%2 at::Tensor)\n")), Strings{"cuda:1"});
}

TEST(Guard, RestoresItAtTheEndOfItsScope) {
  EXPECT_EQ(returned(underGuard("    endscope 0\n    %2 = tensor cuda\n    return (%2 at::Tensor)\n")),
            Strings{"cuda"});
}

TEST(Guard, LeavesExplicitIndicesAlone) {
  EXPECT_EQ(returned(underGuard("    %2 = tensor cuda:2\n    return (%2 at::Tensor)\n")), Strings{"cuda:2"});
}

TEST(Guard, ReachesIntoCalls) {
  EXPECT_EQ(returned(underGuard("    %2 = call make : at::Tensor target=make\n    return (%2 at::Tensor)\n"
                                "function make result=at::Tensor\n  block 0\n    %0 = tensor cuda\n"
                                "    return (%0 at::Tensor)\n")),
            Strings{"cuda:1"});
}

TEST(Guard, SetDeviceStays) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    call set target=set
    %1 = tensor cuda
    return (%1 at::Tensor)
function set
  block 0
    %0 = literal int 2 : int
    call c10::cuda::set_device (%0 int)
    return
)"),
            Strings{"cuda:2"});
}

// A method that sets the device somewhere: outside of main `cuda` may be any device.
const char *const mixedIndices = R"(
function setter
  block 0
    %0 = literal int 0 : int
    call c10::cuda::set_device (%0 int)
    return
function f MAIN params=0
  block 0
    %0 = tensor cuda @4:1-2
    %1 = tensor cuda:1 @5:1-2
    %2 = call at::mm (%0 at::Tensor, %1 at::Tensor) : at::Tensor @9:1-2
    return
)";

TEST(Guard, ElsewhereOpensTheCurrentDeviceOfOtherEntries) {
  std::string open = mixedIndices, closed = mixedIndices;
  open.replace(open.find("MAIN "), 5, "");
  closed.replace(closed.find("MAIN"), 4, "main");
  EXPECT_EQ(conflicts(open), Strings{});
  EXPECT_EQ(conflicts(closed), Strings{"likely mm cuda cuda:1"});
}

const char *const discarded = R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cpu @3:1-2
    store (%0&, %1)
    endstatement
    %0 = local 0
    %1 = literal enum 1 : c10::DeviceType
    %2 = call at::Tensor::to (%0& at::Tensor text=x, %1 c10::DeviceType) : at::Tensor object discarded @4:3-5
    endstatement
    %0 = local 0
    %1 = tensor cuda @5:1-2
    %2 = call at::mm (%0& at::Tensor, %1 at::Tensor) : at::Tensor @6:1-2
    return
)";

TEST(DiscardedMove, IsFoundOnceAndItsConsequencesAreNot) {
  const Solution solution = solve(programOf(discarded));
  ASSERT_EQ(solution.discardedMoves.size(), 1u);
  EXPECT_EQ(solution.discardedMoves[0].tensor, "x");
  EXPECT_EQ(solution.discardedMoves[0].method, "to");
  EXPECT_FALSE(solution.discardedMoves[0].changesDtypeOnly);
  EXPECT_EQ(solution.conflicts.size(), 0u);
}

TEST(DiscardedMove, AKeptMoveIsNone) {
  std::string facts = discarded;
  facts.replace(facts.find("object discarded"), 16, "object");
  const Solution solution = solve(programOf(facts));
  EXPECT_EQ(solution.discardedMoves.size(), 0u);
  EXPECT_EQ(solution.conflicts.size(), 1u); // x itself is still on the CPU
}

TEST(DiscardedMove, OfAModuleIsTheNormalThing) {
  EXPECT_EQ(solve(programOf(R"(
function f params=1
  local 0 net Net ref
  block 0
    %0 = local 0
    %1 = load (%0&) : Net address
    %2 = literal enum 1 : c10::DeviceType
    call torch::nn::Module::to (%1& Net, %2 c10::DeviceType) : void object discarded @4:3-5
    return
)"))
                .discardedMoves.size(),
            0u);
}

// STRICT operations compare everything, pointwise ones accept 0-dim CPU tensors.
std::string scalarMeets(const std::string &operation) {
  return R"(
function f
  block 0
    %0 = tensor cuda:1 @3:1-2
    %1 = literal float 1.0 : float
    %2 = call torch::tensor (%1 float) : at::Tensor @4:1-2
    %3 = call )" +
         operation + " (%0 at::Tensor, %2 at::Tensor) : at::Tensor @9:1-2\n    return\n";
}

TEST(Rank, PointwiseOperationsAcceptAZeroDimCpuTensor) {
  EXPECT_EQ(conflicts(scalarMeets("at::add")), Strings{});
}

TEST(Rank, StrictOperationsDoNot) {
  EXPECT_EQ(conflicts(scalarMeets("at::mm")), Strings{"definite mm cuda:1 cpu"});
}

TEST(Conflict, EndsItsRowBelowAnEntry) {
  EXPECT_EQ(conflicts(R"(
function f
  block 0
    %0 = tensor cpu @3:1-2
    %1 = tensor cuda:1 @4:1-2
    %2 = call both (%0 at::Tensor, %1 at::Tensor) : at::Tensor target=both @5:1-2
    return
function both params=2 result=at::Tensor
  local 0 a at::Tensor
  local 1 b at::Tensor
  block 0
    %0 = local 0
    %1 = local 1
    %2 = call at::mm (%0& at::Tensor, %1& at::Tensor) : at::Tensor @7:1-2
    %3 = tensor cuda:2 @8:1-2
    %4 = call at::mm (%1& at::Tensor, %3 at::Tensor) : at::Tensor @9:1-2
    return (%4 at::Tensor)
)"),
            Strings{"definite mm cuda:1 cpu"});
}

TEST(Conflict, OneCauseIsToldOnce) {
  EXPECT_EQ(conflicts(R"(
function f
  block 0
    %0 = tensor cpu @3:1-2
    %1 = tensor cuda:1 @4:1-2
    %2 = call at::mm (%1 at::Tensor, %0 at::Tensor) : at::Tensor @7:1-2
    %3 = call at::mm (%1 at::Tensor, %0 at::Tensor) : at::Tensor @8:1-2
    return
)"),
            Strings{"definite mm cuda:1 cpu"});
}

TEST(DeviceChoices, KnowWhatNothingWasSeenToBePutInto) {
  DeviceChoices choices;
  const Term seen = symbolTerm("net.device"), unseen = symbolTerm("source.device");
  choices.standsFor(seen, "Net::device");
  choices.standsFor(unseen, "Source::device");
  choices.note("Net::device", deviceValue(Placement::cpu()));
  EXPECT_FALSE(choices.isUnseen(seen));
  EXPECT_TRUE(choices.isUnseen(unseen));
  EXPECT_FALSE(choices.isUnseen(symbolTerm("no slot")));
}

// A kernel, which gets the memory of the tensor that `before` makes as %0.
std::string launch(const std::string &before) {
  return "type \"float *\" pointer pointee=float\nfunction f\n  block 0\n" + before + R"(
    %5 = call at::TensorBase::data_ptr (%0 at::Tensor text=x) : "float *" object
    call kernel (%5 "float *" text=p) : void discarded launch @9:1-2
    return
)";
}

TEST(Device, AKernelRunsOnTheCurrentGpu) {
  EXPECT_EQ(conflicts(launch("    %0 = tensor cpu @3:1-2")), Strings{"definite kernel cpu cuda"});
  EXPECT_EQ(conflicts(launch("    %0 = tensor cuda:1 @3:1-2")), Strings{});
  EXPECT_EQ(conflicts(launch("    %0 = tensor cuda:0 @3:1-2")), Strings{});
}

TEST(Device, AKernelMayReadPinnedMemory) {
  EXPECT_EQ(conflicts(launch("    %1 = tensor cpu @3:1-2\n"
                             "    %0 = call at::Tensor::pin_memory (%1 at::Tensor) : at::Tensor object")),
            Strings{});
}

} // namespace
} // namespace devicetidy::test
