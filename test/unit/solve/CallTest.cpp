// Calls: arguments, results, summaries for each entry, recursion, virtual calls, closures.
#include "test/unit/solve/FactsHarness.h"

#include "gtest/gtest.h"

namespace devicetidy::test {
namespace {

const char *const identity = R"(
function same params=1 result=at::Tensor
  local 0 t at::Tensor
  block 0
    %0 = local 0
    return (%0& at::Tensor)
)";

TEST(Call, AValueGoesInAndComesBack) {
  EXPECT_EQ(returned(std::string(R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = call same (%0 at::Tensor) : at::Tensor target=same
    return (%1 at::Tensor)
)") + identity),
            Strings{"cuda:1"});
}

TEST(Call, TwoEntriesHaveTwoSummaries) {
  EXPECT_EQ(returned(std::string(R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = tensor cpu
    %2 = call same (%0 at::Tensor) : at::Tensor target=same
    %3 = call same (%1 at::Tensor) : at::Tensor target=same
    return (%2 at::Tensor)
)") + identity),
            Strings{"cuda:1"});
}

TEST(Call, AnEqualEntryIsAnsweredFromTheSummary) {
  Analysis analysis(std::string(R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = call same (%0 at::Tensor) : at::Tensor target=same
    %2 = call same (%0 at::Tensor) : at::Tensor target=same
    %3 = tensor cpu
    %4 = call same (%3 at::Tensor) : at::Tensor target=same
    return (%2 at::Tensor)
)") + identity);
  EXPECT_EQ(analysis.returned(), Strings{"cuda:1"});
  EXPECT_EQ(analysis.contexts(), 3u); // f, and two different entries of same
}

TEST(Call, AReferenceParameterIsTheCallersVariable) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    call set (%0& at::Tensor) target=set
    return (%0& at::Tensor)
function set params=1
  local 0 t at::Tensor ref
  block 0
    %0 = local 0
    %1 = load (%0&) : at::Tensor address
    %2 = tensor cuda:3
    store (%1&, %2)
    return
)"),
            Strings{"cuda:3"});
}

TEST(Call, AValueParameterIsACopy) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cpu
    store (%0&, %1)
    %2 = load (%0&)
    call set (%2 at::Tensor) target=set
    return (%0& at::Tensor)
function set params=1
  local 0 t at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cuda:3
    store (%0&, %1)
    return
)"),
            Strings{"cpu"});
}

TEST(Call, AFunctionReturnsInARowForEachWay) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 c bool
  block 0
    %0 = local 0
    %1 = load (%0&)
    %2 = call pick (%1 bool) : at::Tensor target=pick
    return (%2 at::Tensor)
function pick params=1 result=at::Tensor
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

TEST(Call, WhatTheCalleeLearntTheCallerKnows) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 n int
  block 0
    %0 = local 0
    %1 = load (%0&)
    call mustBeSeven (%1 int) target=mustBeSeven
    return (%0& int)
function mustBeSeven params=1
  local 0 n int
  block 0
    %0 = local 0
    %1 = load (%0&)
    %2 = literal int 7 : int
    %3 = operator "==" (%1 int, %2 int) : bool
    branch (%3 bool) b1, b2
  block 1
    return
  block 2
    unreachable
)"),
            Strings{"7"});
}

const char *const recursive = R"(
function f
  block 0
    %0 = tensor cuda:1
    %1 = call down (%0 at::Tensor) : at::Tensor target=down
    return (%1 at::Tensor)
function down params=1 result=at::Tensor
  local 0 t at::Tensor
  block 0
    %0 = opaque : bool
    branch (%0 bool) b1, b2
  block 1
    %0 = local 0
    %1 = load (%0&)
    %2 = call down (%1 at::Tensor) : at::Tensor target=down
    return (%2 at::Tensor)
  block 2
    %0 = local 0
    return (%0& at::Tensor)
)";

TEST(Recursion, EndsAndGivesTheBaseCase) { EXPECT_EQ(returned(recursive), Strings{"cuda:1"}); }

TEST(Recursion, ItsDepthIsCounted) {
  Analysis analysis(recursive);
  analysis.returned();
  EXPECT_GT(analysis.capsHit("recursion depth"), 0u);
  EXPECT_LE(analysis.contexts(), 1u + bounds::recursionDepth);
}

TEST(Recursion, OfTwoFunctionsEnds) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %1 = call ping : at::Tensor target=ping
    return (%1 at::Tensor)
function ping result=at::Tensor
  block 0
    %0 = opaque : bool
    branch (%0 bool) b1, b2
  block 1
    %1 = call pong : at::Tensor target=pong
    return (%1 at::Tensor)
  block 2
    %1 = tensor cuda:1
    return (%1 at::Tensor)
function pong result=at::Tensor
  block 0
    %1 = call ping : at::Tensor target=ping
    return (%1 at::Tensor)
)"),
            Strings{"cuda:1"});
}

// The base case is one that the analysis does not see.
TEST(Recursion, WithoutABaseCaseReturnsSomething) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %1 = call forever : at::Tensor target=forever
    return (%1 at::Tensor)
function forever result=at::Tensor
  block 0
    %1 = call forever : at::Tensor target=forever
    return (%1 at::Tensor)
)"),
            Strings{"unknown"});
}

TEST(Bounds, DeepCallsAreCounted) {
  std::string facts =
      "function f\n  block 0\n    %0 = call f1 : at::Tensor target=f1\n    return (%0 at::Tensor)\n";
  for (int i = 1; i < 30; ++i)
    facts += "function f" + std::to_string(i) + " result=at::Tensor\n  block 0\n    %0 = call f" +
             std::to_string(i + 1) + " : at::Tensor target=f" + std::to_string(i + 1) +
             "\n    return (%0 at::Tensor)\n";
  facts += "function f30 result=at::Tensor\n  block 0\n    %1 = tensor cuda:1\n    return (%1 at::Tensor)\n";
  Analysis analysis(facts);
  EXPECT_EQ(analysis.returned(), Strings{"unknown"});
  EXPECT_EQ(analysis.capsHit("call depth"), 1u);
}

// A function that is given a number, called once more than a function is run for.
std::string manyCallsOf(const std::string &function) {
  std::string facts = "function f\n  block 0\n";
  for (std::size_t i = 0; i <= bounds::contextsPerFunction; ++i)
    facts += "    %0 = literal int " + std::to_string(i) +
             " : int\n    %1 = call once (%0 int) : int target=once\n";
  return facts + "    return (%1 int)\nfunction once params=1\n  local 0 n int\n" + function;
}

TEST(Bounds, ManyCostlyCallsOfOneFunctionAreCounted) {
  std::string body = "  block 0\n";
  for (std::size_t i = 0; i < bounds::factsPerFunction / bounds::contextsPerFunction; ++i)
    body += "    %0 = literal int 1 : int\n";
  Analysis analysis(manyCallsOf(body + "    jump b1\n  block 1\n    %0 = local 0\n    return (%0& int)\n"));
  EXPECT_EQ(analysis.returned(), Strings{"unknown"});
  EXPECT_GT(analysis.capsHit("contexts of one function without devices"), 0u);
}

TEST(Bounds, ManyCallsOfASmallFunctionAreRun) {
  Analysis analysis(
      manyCallsOf("  block 0\n    jump b1\n  block 1\n    %0 = local 0\n    return (%0& int)\n"));
  EXPECT_EQ(analysis.returned(), Strings{std::to_string(bounds::contextsPerFunction)});
  EXPECT_EQ(analysis.capsHit("contexts of one function without devices"), 0u);
}

TEST(Bounds, FunctionsThatOnlyReadAreAlwaysRun) {
  Analysis analysis(manyCallsOf("  block 0\n    %0 = local 0\n    return (%0& int)\n"));
  EXPECT_EQ(analysis.returned(), Strings{std::to_string(bounds::contextsPerFunction)});
  EXPECT_EQ(analysis.capsHit("contexts of one function without devices"), 0u);
}

TEST(Call, OfWhatNobodyKnowsIsCountedAndUnknown) {
  Analysis analysis(R"(
function f
  block 0
    %0 = call thirdparty::make : at::Tensor
    return (%0 at::Tensor)
)");
  EXPECT_EQ(analysis.returned(), Strings{"unknown"});
  EXPECT_EQ(analysis.solution.stats.unknownCalls["thirdparty::make"], 1u);
}

TEST(Call, OfWhatNobodyKnowsMayChangeNumbersItIsHanded) {
  EXPECT_EQ(returned(R"(
function f
  local 0 n int
  block 0
    %0 = local 0
    %1 = literal int 3 : int
    store (%0&, %1)
    call thirdparty::read (%0& int)
    return (%0& int)
)"),
            Strings{"some number"});
}

// Base::make gives a CPU tensor, Derived::make one on cuda:1; `object` makes the object.
std::string virtualCall(const std::string &object, const std::string &parameters = "") {
  return R"(
type Base record project polymorphic
type Derived record project polymorphic bases=(Base)
type "Base *" pointer pointee=Base
function f )" +
         parameters + "\n  local 0 p \"Base *\"\n  block 0\n    %0 = " + object + R"(
    %1 = call Base::make (%0& Base) : at::Tensor object virtual target=Base.make
    return (%1 at::Tensor)
function Base.make name=Base::make class=Base virtual result=at::Tensor
  block 0
    %1 = tensor cpu
    return (%1 at::Tensor)
function Derived.make name=Derived::make class=Derived virtual result=at::Tensor overrides=(Base.make)
  block 0
    %1 = tensor cuda:1
    return (%1 at::Tensor)
)";
}

TEST(Virtual, AKnownObjectAnswersItself) {
  EXPECT_EQ(returned(virtualCall("new : Derived @3:1-2")), Strings{"cuda:1"});
  EXPECT_EQ(returned(virtualCall("new : Base @3:1-2")), Strings{"cpu"});
}

TEST(Virtual, AnObjectFromOutsideMayBeAnyOfItsClasses) {
  const std::string facts = virtualCall("local 0\n    %0 = load (%0&)", "params=1");
  EXPECT_EQ(returned(facts), (Strings{"cpu", "cuda:1"}));
}

TEST(Virtual, AQualifiedCallDoesNotDispatch) {
  std::string facts = virtualCall("new : Derived @3:1-2");
  facts.replace(facts.find("object virtual"), 14, "object");
  EXPECT_EQ(returned(facts), Strings{"cpu"});
}

TEST(Closure, SeesWhatItCaptured) {
  EXPECT_EQ(returned(R"(
type lambda1 record lambda
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = closure (%0& at::Tensor) : lambda1 target=body captures=(x)
    %2 = tensor cuda:2
    store (%0&, %2)
    %3 = call (%1 lambda1) : at::Tensor indirect
    return (%3 at::Tensor)
function body lambda result=at::Tensor
  block 0
    %0 = this
    %1 = field x (%0& lambda1) : at::Tensor
    %2 = load (%1&) : at::Tensor address
    return (%2& at::Tensor)
)"),
            Strings{"cuda:2"});
}

TEST(Closure, ACopyIsOfTheTimeOfTheCapture) {
  EXPECT_EQ(returned(R"(
type lambda1 record lambda
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %4 = tensor cpu
    store (%0&, %4)
    %5 = load (%0&)
    %1 = closure (%5 at::Tensor) : lambda1 target=body captures=(x)
    %2 = tensor cuda:2
    store (%0&, %2)
    %3 = call (%1 lambda1) : at::Tensor indirect
    return (%3 at::Tensor)
function body lambda result=at::Tensor
  block 0
    %0 = this
    %1 = field x (%0& lambda1) : at::Tensor
    return (%1& at::Tensor)
)"),
            Strings{"cpu"});
}

// A function without a body gets the memory of two tensors, one of which was found on a GPU.
const char *const dispatch = R"(
function work params=2 result=void
  local 0 a "float *"
  local 1 b "float *"
function f params=2
  local 0 x at::Tensor ref
  local 1 y at::Tensor ref
  block 0
    %0 = local 0
    %1 = load (%0&) : at::Tensor address
    %2 = call at::Tensor::is_cuda (%1& at::Tensor) : bool object
    branch (%2 bool) b1, b2
  block 1
    %0 = local 0
    %1 = load (%0&) : at::Tensor address
    %2 = local 1
    %3 = load (%2&) : at::Tensor address
    CHECK
    %4 = call at::Tensor::data_ptr (%1& at::Tensor) : "float *" object
    %5 = call at::Tensor::data_ptr (%3& at::Tensor) : "float *" object
    %6 = call work (%4 "float *", %5 "float *") : void target=work @9:1-2
    return
  block 2
    return
)";

std::string dispatchWith(const std::string &check) {
  std::string facts = dispatch;
  return facts.replace(facts.find("CHECK"), 5, check);
}

TEST(Call, MemoryOfATensorThatNobodyAskedForIsLatentBesideOneOnAGpu) {
  EXPECT_EQ(conflicts(dispatchWith(""), true), Strings{"latent work y.device() cuda:i"});
  EXPECT_EQ(conflicts(dispatchWith("%20 = call at::Tensor::is_cuda (%3& at::Tensor) : bool object"), true),
            Strings{})
      << "the code has asked for it";
}

} // namespace
} // namespace devicetidy::test
