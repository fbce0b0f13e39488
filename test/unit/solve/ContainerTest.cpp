// Lists, maps, optionals, pairs, tuples.
#include "test/unit/solve/FactsHarness.h"

#include "gtest/gtest.h"

namespace devicetidy::test {
namespace {

// A vector with cuda:0 and cuda:1 in it, then STEPS; local 1 is a number from outside.
std::string withVector(const std::string &steps) {
  return R"(
function f params=1
  local 0 n int
  local 1 v std::vector<at::Tensor>
  block 0
    declare 1
    %0 = local 1
    %1 = tensor cuda:0
    %2 = tensor cuda:1
    call std::vector::push_back (%0& std::vector<at::Tensor>, %1 at::Tensor) : void object
    call std::vector::push_back (%0& std::vector<at::Tensor>, %2 at::Tensor) : void object
    endstatement
    %0 = local 1
)" + steps;
}

TEST(List, PushedElementsAreReadByTheirIndex) {
  EXPECT_EQ(returned(withVector(R"(
    %3 = literal int 1 : int
    %4 = call "std::vector::operator[]" (%0& std::vector<at::Tensor>, %3 int) : at::Tensor object address
    return (%4& at::Tensor)
)")),
            Strings{"cuda:1"});
}

TEST(List, FrontAndBack) {
  EXPECT_EQ(conflicts(withVector(R"(
    %3 = call std::vector::front (%0& std::vector<at::Tensor>) : at::Tensor object address
    %4 = call std::vector::back (%0& std::vector<at::Tensor>) : at::Tensor object address
    %5 = call at::mm (%3& at::Tensor, %4& at::Tensor) : at::Tensor @9:1-2
    return
)")),
            Strings{"definite mm cuda:0 cuda:1"});
}

TEST(List, SizeIsKnown) {
  EXPECT_EQ(returned(withVector(R"(
    %3 = call std::vector::size (%0& std::vector<at::Tensor>) : long object
    return (%3 long)
)")),
            Strings{"2"});
}

TEST(List, ClearLeavesNothing) {
  EXPECT_EQ(returned(withVector(R"(
    call std::vector::clear (%0& std::vector<at::Tensor>) : void object
    %3 = call std::vector::size (%0& std::vector<at::Tensor>) : long object
    return (%3 long)
)")),
            Strings{"0"});
}

TEST(List, AnUnknownIndexFollowsEveryElement) {
  const Strings answers = returned(withVector(R"(
    %3 = local 0
    %4 = load (%3&)
    %5 = call "std::vector::operator[]" (%0& std::vector<at::Tensor>, %4 int) : at::Tensor object address
    return (%5& at::Tensor)
)"));
  EXPECT_EQ(answers, (Strings{"cuda:0", "cuda:1"}));
}

TEST(List, StoreInASlotKeepsTheOthers) {
  EXPECT_EQ(returned(withVector(R"(
    %3 = literal int 0 : int
    %4 = call "std::vector::operator[]" (%0& std::vector<at::Tensor>, %3 int) : at::Tensor object address
    %5 = tensor cpu
    call "at::Tensor::operator=" (%4& at::Tensor, %5 at::Tensor) : at::Tensor object address
    %6 = call std::vector::back (%0& std::vector<at::Tensor>) : at::Tensor object address
    return (%6& at::Tensor)
)")),
            Strings{"cuda:1"});
}

TEST(List, CatOfElementsThatAreApart) {
  EXPECT_EQ(conflicts(withVector(R"(
    %3 = load (%0&)
    %4 = call at::cat (%3 std::vector<at::Tensor>) : at::Tensor @9:1-2
    return
)")),
            Strings{"definite cat cuda:0 cuda:1"});
}

// A map with "a" on cuda:1 and "b" on the CPU, then STEPS; local 0 is a name from outside.
std::string withMap(const std::string &steps) {
  return R"(
function f params=1
  local 0 name std::string
  local 1 m std::map<at::Tensor>
  block 0
    declare 1
    %0 = local 1
    %1 = literal string a : std::string
    %2 = tensor cuda:1
    %3 = call "std::map::operator[]" (%0& std::map<at::Tensor>, %1 std::string) : at::Tensor object address
    call "at::Tensor::operator=" (%3& at::Tensor, %2 at::Tensor) : at::Tensor object address
    %4 = literal string b : std::string
    %5 = tensor cpu
    %6 = call "std::map::operator[]" (%0& std::map<at::Tensor>, %4 std::string) : at::Tensor object address
    call "at::Tensor::operator=" (%6& at::Tensor, %5 at::Tensor) : at::Tensor object address
)" + steps;
}

TEST(Map, EntriesAreReadByTheirKey) {
  EXPECT_EQ(returned(withMap(R"(
    %7 = call std::map::at (%0& std::map<at::Tensor>, %1 std::string) : at::Tensor object address
    return (%7& at::Tensor)
)")),
            Strings{"cuda:1"});
}

TEST(Map, KnowsItsKeys) {
  EXPECT_EQ(returned(withMap(R"(
    %7 = literal string z : std::string
    %8 = call std::map::count (%0& std::map<at::Tensor>, %1 std::string) : long object
    %9 = call std::map::count (%0& std::map<at::Tensor>, %7 std::string) : long object
    %10 = literal int 10 : int
    %11 = operator * (%8 long, %10 int) : long
    %12 = operator + (%11 long, %9 long) : long
    return (%12 long)
)")),
            Strings{"10"});
}

TEST(Map, AnEntryOfAnUnknownKeyIsWhatAllAgreeOn) {
  EXPECT_EQ(returned(withMap(R"(
    %7 = local 0
    %8 = call std::map::at (%0& std::map<at::Tensor>, %7& std::string) : at::Tensor object address
    return (%8& at::Tensor)
)")),
            Strings{"unknown"});
}

const char *const withOptional = R"(
function f
  local 0 o std::optional<at::Tensor>
  block 0
    declare 0
    %0 = local 0
    %1 = tensor cuda:1
)";

TEST(Optional, HoldsWhatWasAssigned) {
  EXPECT_EQ(returned(std::string(withOptional) + R"(
    call "std::optional::operator=" (%0& std::optional<at::Tensor>, %1 at::Tensor) : void object address
    %2 = call std::optional::operator* (%0& std::optional<at::Tensor>) : at::Tensor object address
    return (%2& at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Optional, EmptyHasNoValue) {
  EXPECT_EQ(returned(std::string(withOptional) + R"(
    %2 = call std::optional::has_value (%0& std::optional<at::Tensor>) : bool object
    return (%2 bool)
)"),
            Strings{"0"});
}

TEST(Optional, ValueOrGivesTheOther) {
  EXPECT_EQ(returned(std::string(withOptional) + R"(
    %2 = call std::optional::value_or (%0& std::optional<at::Tensor>, %1 at::Tensor) : at::Tensor object
    return (%2 at::Tensor)
)"),
            Strings{"cuda:1"});
}

TEST(Pair, KeepsItsPartsApart) {
  EXPECT_EQ(returned(R"(
function f
  local 0 p std::pair<at::Tensor>
  block 0
    %0 = tensor cuda:1
    %1 = tensor cpu
    %2 = call std::make_pair (%0 at::Tensor, %1 at::Tensor) : std::pair<at::Tensor>
    %3 = local 0
    store (%3&, %2)
    %4 = field second (%3&)
    return (%4& at::Tensor)
)"),
            Strings{"cpu"});
}

// v.push_back(zeros on cuda:i) in a loop, then STEPS.
std::string layersOfALoop(const std::string &steps) {
  return R"(
function f params=1
  local 0 n int
  local 1 v std::vector<at::Tensor>
  local 2 i int
  block 0
    declare 1
    %0 = local 2
    %1 = literal int 0 : int
    store (%0&, %1)
    %2 = opaque : bool
    branch (%2 bool) b1, b2 enters
  block 1 loop varies=(2)
    %0 = local 2
    %1 = load (%0&) : int
    %2 = literal enum 1 : c10::DeviceType
    %3 = call c10::device (%2 c10::DeviceType, %1 int text=i) : c10::TensorOptions
    %4 = call torch::zeros (%3 c10::TensorOptions) : at::Tensor @5:1-2
    %5 = local 1
    call std::vector::push_back (%5& std::vector<at::Tensor>, %4 at::Tensor) : void object
    endstatement
    %0 = local 2
    %1 = load (%0&) : int
    %2 = literal int 1 : int
    %3 = operator + (%1 int, %2 int) : int
    store (%0&, %3)
    %4 = opaque : bool
    branch (%4 bool) b1, b2
  block 2
    endstatement
    %0 = local 1
)" + steps;
}

TEST(List, OfALoopIsReadBackWithItsIndex) {
  EXPECT_EQ(returned(layersOfALoop(R"(
    %1 = literal int 3 : int
    %2 = call "std::vector::operator[]" (%0& std::vector<at::Tensor>, %1 int) : at::Tensor object address
    return (%2& at::Tensor)
)")),
            Strings{"cuda:3"});
}

TEST(List, TheLastOfALoopIsNotTheFirst) {
  EXPECT_EQ(conflicts(layersOfALoop(R"(
    %1 = call std::vector::front (%0& std::vector<at::Tensor>) : at::Tensor object address
    %2 = call std::vector::back (%0& std::vector<at::Tensor>) : at::Tensor object address
    %3 = call at::mm (%1& at::Tensor, %2& at::Tensor) : at::Tensor @9:1-2
    return
)")),
            Strings{"likely mm cuda:0 cuda:i"});
}

TEST(List, OneElementOfALoopIsWithItself) {
  EXPECT_EQ(conflicts(layersOfALoop(R"(
    %1 = local 0
    %2 = load (%1&)
    %3 = call "std::vector::operator[]" (%0& std::vector<at::Tensor>, %2 int) : at::Tensor object address
    %4 = call "std::vector::operator[]" (%0& std::vector<at::Tensor>, %2 int) : at::Tensor object address
    %5 = call at::mm (%3& at::Tensor, %4& at::Tensor) : at::Tensor @9:1-2
    return
)"),
                      true),
            Strings{});
}

} // namespace
} // namespace devicetidy::test
