// Variables, pointers, references, fields, arrays: what a load gives after a store.
#include "test/unit/solve/FactsHarness.h"

#include "gtest/gtest.h"

namespace devicetidy::test {
namespace {

TEST(Memory, LoadGivesWhatWasStored) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cuda:1
    store (%0&, %1)
    %2 = load (%0&)
    return (%2 at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Memory, TheLastStoreCounts) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cuda:1
    store (%0&, %1)
    %2 = tensor cpu
    store (%0&, %2)
    return (%0& at::Tensor)
)"),
            Strings{"cpu"});
}

TEST(Memory, CopyIsAValueOfItsOwn) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  local 1 y at::Tensor
  block 0
    %0 = local 0
    %1 = local 1
    %2 = tensor cuda:1
    store (%0&, %2)
    %3 = load (%0&)
    store (%1&, %3)
    %4 = tensor cpu
    store (%0&, %4)
    return (%1& at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Memory, StoreThroughAReferenceReachesTheVariable) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  local 1 r at::Tensor ref
  block 0
    %0 = local 0
    %1 = local 1
    store (%1&, %0&)
    %2 = load (%1&) : at::Tensor address
    %3 = tensor cuda:2
    store (%2&, %3)
    return (%0& at::Tensor)
)"),
            Strings{"cuda:2"});
}

TEST(Memory, StoreThroughAPointerReachesTheVariable) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  local 1 p "at::Tensor *"
  block 0
    %0 = local 0
    %1 = local 1
    store (%1&, %0)
    %2 = load (%1&)
    %3 = tensor cuda:2
    store (%2&, %3)
    return (%0& at::Tensor)
)"),
            Strings{"cuda:2"});
}

TEST(Memory, NothingWasStoredInADeclaredTensor) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    declare 0
    %0 = local 0
    return (%0& at::Tensor)
)"),
            Strings{"null"});
}

TEST(Memory, AVariableEndsWithItsScope) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cuda:2
    store (%0&, %1)
    endscope 0
    return (%0& at::Tensor)
)"),
            Strings{"unknown"});
}

TEST(Memory, FieldsAreApart) {
  EXPECT_EQ(returned(R"(
function f
  local 0 b Batch
  block 0
    %0 = local 0
    %1 = field data (%0&)
    %2 = field target (%0&)
    %3 = tensor cuda:1
    store (%1&, %3)
    %4 = tensor cpu
    store (%2&, %4)
    return (%1& at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Memory, FieldsOfTwoObjectsAreApart) {
  EXPECT_EQ(returned(R"(
function f
  local 0 a Batch
  local 1 b Batch
  block 0
    %0 = local 0
    %1 = local 1
    %2 = field data (%0&)
    %3 = field data (%1&)
    %4 = tensor cuda:1
    store (%2&, %4)
    %5 = tensor cpu
    store (%3&, %5)
    return (%2& at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Memory, CopyOfARecordTakesItsFields) {
  EXPECT_EQ(returned(R"(
function f
  local 0 a Batch
  local 1 b Batch
  block 0
    %0 = local 0
    %1 = local 1
    %2 = field data (%0&)
    %3 = tensor cuda:1
    store (%2&, %3)
    %4 = load (%0&)
    store (%1&, %4)
    %5 = field data (%1&)
    return (%5& at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Memory, FieldsThroughTwoPointers) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = new : Batch @3:1-2
    %1 = new : Batch @4:1-2
    %2 = field next (%0&)
    store (%2&, %1)
    %3 = load (%2&)
    %4 = field data (%3&)
    %5 = tensor cuda:3
    store (%4&, %5)
    %6 = field data (%1&)
    return (%6& at::Tensor)
)"),
            Strings{"cuda:3"});
}

TEST(Memory, TwoHeapObjectsOfOneSiteAreApart) {
  EXPECT_EQ(returned(R"(
function f
  local 0 p "Batch *"
  block 0
    %8 = call make : "Batch *" target=make
    %0 = local 0
    store (%0&, %8)
    %9 = call make : "Batch *" target=make
    %1 = field data (%9&)
    %2 = tensor cpu
    store (%1&, %2)
    %3 = field data (%8&)
    return (%3& at::Tensor)
function make result="Batch *"
  block 0
    %0 = new : Batch @3:1-2
    %1 = field data (%0&)
    %2 = tensor cuda:1
    store (%1&, %2)
    return (%0 "Batch *")
)"),
            Strings{"cuda:1"});
}

TEST(Memory, ElementsOfAnArrayAreApart) {
  EXPECT_EQ(returned(R"(
function f
  local 0 a at::Tensor[2]
  block 0
    %0 = local 0
    %1 = tensor cuda:1
    %2 = tensor cpu
    %3 = aggregate (%1 at::Tensor, %2 at::Tensor) : at::Tensor[2]
    store (%0&, %3)
    %4 = literal int 1 : int
    %5 = element (%0& at::Tensor[2], %4 int)
    return (%5& at::Tensor)
)"),
            Strings{"cpu"});
}

TEST(Memory, AnUnknownElementOfUnlikeOnesIsUnknown) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 i int
  local 1 a at::Tensor[2]
  block 0
    %0 = local 1
    %1 = tensor cuda:1
    %2 = tensor cpu
    %3 = aggregate (%1 at::Tensor, %2 at::Tensor) : at::Tensor[2]
    store (%0&, %3)
    %4 = local 0
    %5 = load (%4&) : int
    %6 = element (%0& at::Tensor[2], %5 int)
    return (%6& at::Tensor)
)"),
            Strings{"unknown"});
}

TEST(Memory, AggregateByFieldNames) {
  EXPECT_EQ(returned(R"(
function f
  local 0 b Batch
  block 0
    %0 = tensor cuda:1
    %1 = tensor cpu
    %2 = aggregate (%0 at::Tensor, %1 at::Tensor) : Batch captures=(data, target)
    %3 = local 0
    store (%3&, %2)
    %4 = field target (%3&)
    return (%4& at::Tensor)
)"),
            Strings{"cpu"});
}

TEST(Memory, AParameterReadTwiceIsOneDevice) {
  EXPECT_EQ(conflicts(R"(
function f params=1
  local 0 b Batch ref
  block 0
    %0 = local 0
    %1 = load (%0&) : Batch address
    %2 = field data (%1&)
    %3 = load (%2&) : at::Tensor
    %4 = load (%2&) : at::Tensor
    %5 = call at::mm (%3 at::Tensor, %4 at::Tensor) : at::Tensor @9:1-2
    return
)",
                      true),
            Strings{});
}

TEST(Memory, TwoFieldsFromOutsideAreTwoDevices) {
  const std::string fields = R"(
function f params=1
  local 0 b Batch ref
  block 0
    %0 = local 0
    %1 = load (%0&) : Batch address
    %2 = field data (%1&)
    %3 = field target (%1&)
)";
  EXPECT_EQ(conflicts(fields + R"(
    %4 = call at::mm (%2& at::Tensor, %3& at::Tensor) : at::Tensor @9:1-2
    return
)",
                      true),
            Strings{})
      << "callers keep them together";
  EXPECT_EQ(conflicts(fields + R"(
    %5 = tensor cuda:1 @8:1-2
    %6 = call at::Tensor::to (%2& at::Tensor, %5 at::Tensor) : at::Tensor object @8:1-9
    %4 = call at::mm (%6 at::Tensor, %3& at::Tensor) : at::Tensor @9:1-2
    return
)",
                      true),
            Strings{"likely mm cuda:1 b.target.device()"});
}

TEST(Memory, AHandleLeadsToOneTensor) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 handle long
  block 0
    %0 = local 0
    %1 = load (%0&) : long
    %2 = operator cast (%1 long text=handle) : "at::Tensor *"
    return (%2& at::Tensor)
)"),
            Strings{"handle.device()"});
}

TEST(Memory, AHandleToWhatTheProgramMadeIsThat) {
  EXPECT_EQ(returned(R"(
function f
  local 0 x at::Tensor
  block 0
    %0 = local 0
    %1 = tensor cuda:1
    store (%0&, %1)
    %2 = operator cast (%0 "void *" text=handle) : "at::Tensor *"
    return (%2& at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Memory, WhatUnseenCodeWritesIsATensorFromOutside) {
  EXPECT_EQ(returned(R"(
function get params=2 result=int
  local 0 number int
  local 1 out "void **"
function f params=1
  local 0 number int
  local 1 t "at::Tensor *"
  block 0
    declare 1
    %0 = local 0
    %1 = load (%0&) : int
    %2 = local 1
    %3 = call get (%1 int, %2! "void **") : int target=get
    %4 = load (%2&) : "at::Tensor *"
    return (%4& at::Tensor)
)"),
            Strings{"t.device()"});
}

TEST(Memory, ElementsBehindAPointerFromOutsideAreApart) {
  const std::string elements = R"(
function f params=1
  local 0 p "at::Tensor *"
  block 0
    %0 = local 0
    %1 = load (%0&) : "at::Tensor *"
    %2 = literal int 1 : int
    %3 = element (%1 "at::Tensor *", %2 int)
    %4 = tensor cuda:1 @8:1-2
)";
  EXPECT_EQ(conflicts(elements + R"(
    %5 = call at::Tensor::to (%3& at::Tensor, %4 at::Tensor) : at::Tensor object @8:1-9
    %6 = literal int 2 : int
    %7 = element (%1 "at::Tensor *", %6 int)
    %20 = call at::mm (%5 at::Tensor, %7& at::Tensor) : at::Tensor @9:1-2
    return
)",
                      true),
            Strings{"likely mm cuda:1 p[i].device()"});
  EXPECT_EQ(returned(elements + R"(
    store (%3&, %4)
    return (%3& at::Tensor)
)"),
            Strings{"unknown"})
      << "elements that are written are not told apart";
}

TEST(Memory, AnEntryOfAMapThatACallerPasses) {
  EXPECT_EQ(returned(R"(
function f params=1
  local 0 m std::map<at::Tensor>
  block 0
    %0 = local 0
    %1 = literal string weight : std::string
    %2 = call std::map::at (%0& std::map<at::Tensor>, %1 std::string) : at::Tensor object address
    return (%2& at::Tensor)
)"),
            Strings{"m[weight].device()"});
}

TEST(Memory, AGlobalKeepsWhatMainStored) {
  EXPECT_EQ(returned(R"(
global g type=at::Tensor
function f
  block 0
    %0 = global g : at::Tensor
    %1 = tensor cuda:1
    store (%0&, %1)
    endstatement
    call nothing target=nothing
    endstatement
    %2 = global g : at::Tensor
    return (%2& at::Tensor)
function nothing
  block 0
    return
)"),
            Strings{"cuda:1"});
}

TEST(Memory, AnOpaqueValueIsUnknown) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = opaque : at::Tensor
    return (%0 at::Tensor)
)"),
            Strings{"unknown"});
}

TEST(Memory, RegistersDieWithTheirExpression) {
  EXPECT_EQ(returned(R"(
function f
  block 0
    %0 = tensor cuda:1
    endstatement
    %1 = literal int 1 : int
    return (%0 at::Tensor)
)"),
            Strings{"unknown"});
}

} // namespace
} // namespace devicetidy::test
