// Branches, correlated conditions, switches, exceptions: rows that stay apart and rows that meet.
#include "test/unit/solve/FactsHarness.h"

#include "gtest/gtest.h"

namespace devicetidy::test {
namespace {

TEST(Branch, BothWaysAreKeptApart) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 c bool
  block 0
    %0 = local 0
    branch (%0& bool) b1, b2
  block 1
    %1 = tensor cuda:1
    return (%1 at::Tensor)
  block 2
    %1 = tensor cpu
    return (%1 at::Tensor)
)"),
            (Strings{"cpu", "cuda:1"}));
}

TEST(Branch, AConstantConditionTakesOneWay) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = literal bool 0 : bool
    branch (%0 bool) b1, b2
  block 1
    %1 = tensor cuda:1
    return (%1 at::Tensor)
  block 2
    %1 = tensor cpu
    return (%1 at::Tensor)
)"),
            Strings{"cpu"});
}

// if (c) x = cuda; if (c) y = cuda;  then x and y are together.
constexpr const char *moveBoth = R"(
function f params=1
  local 0 c bool
  local 1 x at::Tensor
  local 2 y at::Tensor
  block 0
    %0 = local 1
    %1 = local 2
    %2 = tensor cpu
    store (%0&, %2)
    store (%1&, %2)
    %3 = local 0
    branch (%3& bool) b1, b2
  block 1
    %0 = local 1
    %1 = tensor cuda:1
    store (%0&, %1)
    jump b2
  block 2
    %0 = local 0
    branch (%0& bool) b3, b4
  block 3
    %0 = local 2
    %1 = tensor cuda:1
    store (%0&, %1)
    jump b4
  block 4
    %0 = local 1
    %1 = local 2
    %2 = call at::mm (%0& at::Tensor, %1& at::Tensor) : at::Tensor @9:1-2
    return
)";

TEST(Branch, TheSameConditionTwiceCorrelates) { EXPECT_EQ(conflicts(moveBoth), Strings{}); }

TEST(Branch, OtherConditionsDoNot) {
  std::string facts = moveBoth;
  const std::string second = "%0 = local 0\n    branch (%0& bool) b3, b4";
  facts.replace(facts.find(second), second.size(), "%0 = opaque : bool\n    branch (%0 bool) b3, b4");
  EXPECT_EQ(conflicts(facts), Strings{"definite mm cuda:1 cpu"});
}

// moveBoth with its second branch on what `question` says.
std::string asked(const std::string &question) {
  std::string facts = moveBoth;
  const std::string second = "%0 = local 0\n    branch (%0& bool) b3, b4";
  facts.replace(facts.find(second), second.size(), question + "\n    branch (%0 bool) b3, b4");
  return facts;
}

// A library function of a known number answers one thing: that branch may never be taken.
TEST(Branch, OneThatTheProgramDecidesIsAGuess) {
  EXPECT_EQ(conflicts(asked("%1 = literal int 3 : int\n    %0 = call std::isPrime (%1 int) : bool")),
            Strings{"likely mm cuda:1 cpu"});
}

TEST(Branch, OneThatACallerDecidesIsTaken) {
  EXPECT_EQ(conflicts(asked("%1 = call asked () : int\n    %0 = call std::isPrime (%1 int) : bool")),
            Strings{"definite mm cuda:1 cpu"});
  EXPECT_EQ(
      conflicts(asked("%1 = literal int 3 : int\n    %0 = call std::filesystem::exists (%1 int) : bool")),
      Strings{"definite mm cuda:1 cpu"});
}

TEST(Branch, TheNegatedConditionCorrelates) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 n int
  block 0
    %0 = local 0
    %1 = load (%0&) : int
    %2 = literal int 3 : int
    %3 = operator "==" (%1 int, %2 int) : bool
    branch (%3 bool) b1, b2
  block 1
    %0 = local 0
    %1 = load (%0&) : int
    %2 = literal int 3 : int
    %3 = operator "!=" (%1 int, %2 int) : bool
    branch (%3 bool) b2, b3
  block 2
    %1 = tensor cpu
    return (%1 at::Tensor)
  block 3
    %0 = local 0
    return (%0& int)
)"),
            (Strings{"3", "cpu"}));
}

TEST(Branch, AnEqualityPinsTheNumber) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 n int
  block 0
    %0 = local 0
    %1 = load (%0&) : int
    %2 = literal int 7 : int
    %3 = operator "==" (%1 int, %2 int) : bool
    branch (%3 bool) b1, b2
  block 1
    %0 = local 0
    return (%0& int)
  block 2
    unreachable
)"),
            Strings{"7"});
}

TEST(Branch, EqualRowsMerge) {
  Analysis analysis(R"(
function f params=1
  local 0 c bool
  block 0
    %0 = local 0
    branch (%0& bool) b1, b2
  block 1
    jump b3
  block 2
    jump b3
  block 3
    %1 = tensor cpu
    return (%1 at::Tensor)
)");
  EXPECT_EQ(analysis.rowsReturned(), 1u);
}

TEST(Branch, IsCudaPinsTheDeviceOfATensor) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = call at::Tensor::is_cuda (%0& at::Tensor) : bool object
    branch (%1 bool) b1, b2
  block 1
    unreachable
  block 2
    %0 = local 0
    return (%0& at::Tensor)
)"),
            Strings{"cpu"});
}

TEST(Branch, NoCudaDeviceMeansNoCudaTensor) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = call torch::cuda::is_available : bool
    branch (%0 bool) b1, b2
  block 1
    %1 = tensor cuda
    return (%1 at::Tensor)
  block 2
    %1 = tensor cuda
    return (%1 at::Tensor)
)"),
            Strings{"cuda"});
}

constexpr const char *switched = R"(
function f params=1
  local 0 n int
  block 0
    %0 = local 0
    switch (%0& int) 1:b1, 2:b2, b3
  block 1
    %1 = tensor cuda:1
    return (%1 at::Tensor)
  block 2
    %1 = tensor cuda:2
    return (%1 at::Tensor)
  block 3
    %1 = tensor cpu
    return (%1 at::Tensor)
)";

TEST(Switch, EveryCaseAndTheDefault) { EXPECT_EQ(returned(switched), (Strings{"cpu", "cuda:1", "cuda:2"})); }

TEST(Switch, AConstantTakesItsCase) {
  std::string facts = switched;
  const std::string read = "%0 = local 0\n    switch (%0& int)";
  facts.replace(facts.find(read), read.size(), "%0 = literal int 2 : int\n    switch (%0 int)");
  EXPECT_EQ(returned(facts), Strings{"cuda:2"});
}

TEST(Switch, AConstantWithoutACaseTakesTheDefault) {
  std::string facts = switched;
  const std::string read = "%0 = local 0\n    switch (%0& int)";
  facts.replace(facts.find(read), read.size(), "%0 = literal int 9 : int\n    switch (%0 int)");
  EXPECT_EQ(returned(facts), Strings{"cpu"});
}

// switch (x.device().type()), with x on `device`.
std::string switchedType(const std::string &device) {
  return R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor )" +
         device + R"(
    store (%0&, %1)
    %2 = call at::TensorBase::device (%0& at::Tensor) : c10::Device object
    %3 = call c10::Device::type (%2 c10::Device) : c10::DeviceType object
    switch (%3 c10::DeviceType) 0:b1, 1:b2, b3
  block 1
    %1 = literal int 10 : int
    return (%1 int)
  block 2
    %1 = literal int 20 : int
    return (%1 int)
  block 3
    %1 = literal int 30 : int
    return (%1 int)
)";
}

TEST(Switch, ADeviceTypeTakesItsCase) {
  EXPECT_EQ(returned(switchedType("cpu")), Strings{"10"});
  EXPECT_EQ(returned(switchedType("cuda")), Strings{"20"});
  EXPECT_EQ(returned(switchedType("cuda:1")), Strings{"20"});
  EXPECT_EQ(returned(switchedType("mps")), Strings{"30"});
}

// What is asked of a parameter, and where it is known to be on either way.
std::string askedParameter(const std::string &question) {
  return R"(
function f params=1
  local 0 x at::Tensor
  block 0
    %0 = local 0
)" + question +
         R"(
    branch (%9 bool) b1, b2
  block 1
    %1 = local 0
    %2 = load (%1&)
    return (%2 at::Tensor)
  block 2
    %1 = literal int 0 : int
    return (%1 int)
)";
}

TEST(Branch, AnIndexTellsTheCpuFromCuda) {
  const std::string index = R"(
    %1 = call at::TensorBase::get_device (%0& at::Tensor) : long object
    %2 = literal int -1 : int
    %3 = literal int 0 : int
)";
  EXPECT_EQ(returned(askedParameter(index + "    %9 = operator \">=\" (%1 long, %3 int) : bool")),
            (Strings{"0", "cuda:i"}));
  EXPECT_EQ(returned(askedParameter(index + "    %9 = operator \"!=\" (%1 long, %2 int) : bool")),
            (Strings{"0", "cuda:i"}));
  EXPECT_EQ(returned(askedParameter(index + "    %9 = operator \"==\" (%1 long, %2 int) : bool")),
            (Strings{"0", "cpu"}));
  EXPECT_EQ(returned(askedParameter(index + "    %9 = operator \"<\" (%1 long, %3 int) : bool")),
            (Strings{"0", "cpu"}));
}

TEST(Branch, ALegacyTypeTellsTheCpuFromCuda) {
  EXPECT_EQ(returned(askedParameter(R"(
    %1 = call at::Tensor::type (%0& at::Tensor) : at::DeprecatedTypeProperties object address
    %9 = call at::DeprecatedTypeProperties::is_cuda (%1& at::DeprecatedTypeProperties) : bool object
)")),
            (Strings{"0", "cuda:i"}));
}

// A message of c10 whose severity is fatal ends the program, one of another severity does not.
std::string logged(int severity) {
  return R"(
function f
  local 0 m c10::MessageLogger
  block 0
    %0 = local 0
    %1 = literal string f.cpp : "const char *"
    %2 = literal int 1 : int
    %3 = literal int )" +
         std::to_string(severity) + R"( : int
    construct c10::MessageLogger::MessageLogger (%0& c10::MessageLogger, %1 "const char *", %2 int, %3 int) : c10::MessageLogger
    %4 = literal int 1 : int
    return (%4 int)
)";
}

TEST(Branch, AFatalMessageEndsTheProgram) {
  EXPECT_EQ(returned(logged(3)), Strings{});
  EXPECT_EQ(returned(logged(2)), Strings{"1"});
}

// Making a tensor is taken not to throw, so what was before the first store is not seen.
TEST(Handler, SeesTheStateBeforeAndAfterACall) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0 handler=b1
    %0 = local 0
    %1 = tensor cpu
    store (%0&, %1)
    call someLibraryFunction
    %2 = tensor cuda:1
    store (%0&, %2)
    call someLibraryFunction
    unreachable
  block 1
    %0 = local 0
    return (%0& at::Tensor)
)"),
            (Strings{"cpu", "cuda:1"}));
}

TEST(Handler, StoresThrowNothing) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cuda:1
    store (%0&, %1)
    jump b1
  block 1 handler=b2
    %0 = local 0
    %1 = literal null : at::Tensor
    store (%0&, %1)
    unreachable
  block 2
    %0 = local 0
    return (%0& at::Tensor)
)"),
            Strings{});
}

TEST(Handler, RegistersAreGone) {
  EXPECT_EQ(returned(R"(
function f
  block 0 handler=b1
    %0 = tensor cuda:1
    call someLibraryFunction
    unreachable
  block 1
    return (%0 at::Tensor)
)"),
            Strings{"unknown"});
}

} // namespace
} // namespace devicetidy::test
