// Modules: registration, to(), handles on parameters, members that stay behind.
#include "test/unit/solve/FactsHarness.h"

#include "gtest/gtest.h"

namespace devicetidy::test {
namespace {

// Net registers `w` and makes `plain`, both on the CPU. STEPS run with an object in local 0 (register %0).
std::string withNet(const std::string &steps, const std::string &locals = "") {
  return R"(
function Net.Net name=Net::Net class=Net constructor
  block 0
    %0 = this
    %1 = literal string w : std::string
    %2 = call torch::zeros : at::Tensor @3:1-2
    %3 = call torch::nn::Module::register_parameter (%0& Net, %1, %2) : at::Tensor object address @4:1-2
    %4 = field w (%0& Net)
    call "at::Tensor::operator=" (%4& at::Tensor, %3& at::Tensor) : at::Tensor object address
    %5 = field plain (%0& Net)
    %6 = call torch::ones : at::Tensor @5:1-2
    call "at::Tensor::operator=" (%5& at::Tensor, %6 at::Tensor) : at::Tensor object address
    return
function f main
  local 0 net Net
)" + locals +
         R"(
  block 0
    declare 0
    %0 = local 0
    construct Net::Net (%0& Net) : Net target=Net.Net
    endstatement
    %0 = local 0
)" + steps;
}

const char *const moveIt = R"(
    %1 = literal string cuda:1 : "const char *"
    %2 = call c10::device (%1 "const char *") : c10::TensorOptions
    %3 = call c10::TensorOptions::device (%2 c10::TensorOptions) : c10::Device object
    call torch::nn::Module::to (%0& Net text=net, %3 c10::Device) : void object @7:1-2
)";

TEST(Module, IsMadeOnTheCpu) {
  EXPECT_EQ(returned(withNet("    %1 = field w (%0& Net)\n    return (%1& at::Tensor)\n")), Strings{"cpu"});
}

TEST(Module, ToMovesWhatIsRegistered) {
  EXPECT_EQ(
      returned(withNet(std::string(moveIt) + "    %4 = field w (%0& Net)\n    return (%4& at::Tensor)\n")),
      Strings{"cuda:1"});
}

TEST(Module, ToLeavesAPlainMemberBehind) {
  EXPECT_EQ(returned(withNet(std::string(moveIt) +
                             "    %4 = field plain (%0& Net)\n    return (%4& at::Tensor)\n")),
            Strings{"cpu"});
}

TEST(Module, APlainMemberThatMeetsAMovedOneIsFound) {
  const Solution solution = solve(programOf(withNet(std::string(moveIt) + R"(
    %4 = field w (%0& Net)
    %5 = field plain (%0& Net)
    %6 = call at::mm (%4& at::Tensor, %5& at::Tensor) : at::Tensor @9:1-2
    return
)")));
  EXPECT_EQ(solution.conflicts.size(), 0u);
  ASSERT_EQ(solution.unregisteredMembers.size(), 1u);
  EXPECT_EQ(solution.unregisteredMembers[0].member, "plain");
  EXPECT_EQ(solution.unregisteredMembers[0].className, "Net");
  EXPECT_EQ(solution.unregisteredMembers[0].conflict.level, Level::Definite);
}

TEST(Module, AHandleTakenBeforeTheMoveFollowsIt) {
  EXPECT_EQ(returned(withNet(std::string(R"(
    %4 = field w (%0& Net)
    %5 = load (%4&)
    %6 = local 1
    store (%6&, %5)
)") + moveIt + "    return (%6& at::Tensor)\n",
                             "  local 1 w at::Tensor")),
            Strings{"cuda:1"});
}

TEST(Module, AResultComputedBeforeTheMoveStays) {
  EXPECT_EQ(returned(withNet(std::string(R"(
    %4 = field w (%0& Net)
    %5 = call at::Tensor::clone (%4& at::Tensor) : at::Tensor object
    %6 = local 1
    store (%6&, %5)
)") + moveIt + "    return (%6& at::Tensor)\n",
                             "  local 1 copy at::Tensor")),
            Strings{"cpu"});
}

TEST(Module, TheTensorThatWasRegisteredMovesToo) {
  EXPECT_EQ(returned(withNet(std::string(R"(
    %4 = local 1
    %5 = tensor cpu
    store (%4&, %5)
    %6 = literal string b : std::string
    call torch::nn::Module::register_buffer (%0& Net, %6, %4&) : at::Tensor object address @6:1-2
)") + moveIt + "    return (%4& at::Tensor)\n",
                             "  local 1 b at::Tensor")),
            Strings{"cuda:1"});
}

TEST(Module, TwoObjectsMoveApart) {
  EXPECT_EQ(returned(withNet(std::string(R"(
    %7 = local 1
    construct Net::Net (%7& Net) : Net target=Net.Net
)") + moveIt + "    %8 = field w (%7& Net)\n    return (%8& at::Tensor)\n",
                             "  local 1 other Net")),
            Strings{"cpu"});
}

TEST(Module, SharedPointersToOneModuleMoveTogether) {
  EXPECT_EQ(returned(withNet(R"(
    %1 = call std::make_shared : std::shared_ptr<Net> templates=(Net) @6:1-2
    %2 = local 1
    store (%2&, %1)
    %3 = load (%2&)
    %4 = call std::shared_ptr::operator-> (%3 std::shared_ptr<Net>) : "Net *" object
    %5 = literal enum 1 : c10::DeviceType
    call torch::nn::Module::to (%4& Net, %5 c10::DeviceType) : void object @7:1-2
    %6 = load (%2&)
    %7 = field w (%6& Net)
    return (%7& at::Tensor)
)",
                             "  local 1 p std::shared_ptr<Net>")),
            Strings{"cuda"});
}

TEST(Module, ALibraryModuleComputesWhereItsParametersAre) {
  EXPECT_EQ(conflicts(R"(
function f
  local 0 fc torch::nn::Linear
  block 0
    declare 0
    %0 = local 0
    %1 = literal int 3 : int
    construct torch::nn::Linear::Linear (%0& torch::nn::Linear, %1 int, %1 int) : torch::nn::Linear @3:1-2
    %2 = call torch::nn::ModuleHolder::operator-> (%0& torch::nn::Linear) : "torch::nn::LinearImpl *" object
    %3 = literal enum 1 : c10::DeviceType
    call torch::nn::Module::to (%2& torch::nn::LinearImpl, %3 c10::DeviceType) : void object @4:1-2
    %4 = tensor cpu
    %5 = call torch::nn::LinearImpl::forward (%2& torch::nn::LinearImpl, %4) : at::Tensor object @5:1-2
    return
)"),
            Strings{"definite Linear::forward cuda cpu"});
}

} // namespace
} // namespace devicetidy::test
