#include "analyzer/driver/Programs.h"

#include "gtest/gtest.h"

#include <set>

using namespace devicetidy;
using devicetidy::driver::groupPrograms;
using Groups = std::vector<std::vector<std::size_t>>;

namespace {

/// A translation unit under construction.
class UnitMaker {
public:
  explicit UnitMaker(const std::string &file) { unit.mainFile = file; }

  /// Defines `id` here, or in the header `header`, and lets it call `targets`.
  UnitMaker &defines(const std::string &id, std::vector<std::string> targets = {},
                     const std::string &header = "") {
    Function function;
    function.id = id;
    function.hasBody = true;
    function.isMain = id.rfind("main@", 0) == 0;
    function.where = {header.empty() ? unit.mainFile : Name(header), ++line, 1, line, 2};
    function.blocks.emplace_back();
    for (const std::string &target : targets) {
      Fact call;
      call.kind = FactKind::Call;
      call.target = target;
      function.blocks.back().facts.push_back(call);
    }
    unit.functions[id] = function;
    return *this;
  }

  UnitMaker &main(std::vector<std::string> targets = {}) {
    return defines("main@" + unit.mainFile.str(), std::move(targets));
  }

  UnitMaker &hasType(const std::string &id, const std::string &file, std::uint32_t typeLine = 1) {
    Type type;
    type.id = id;
    type.isProject = true;
    type.where = {file, typeLine, 1, typeLine, 2};
    unit.types[id] = type;
    return *this;
  }

  /// A function that touches the global `name`, or the initialisers of the unit.
  UnitMaker &touches(const std::string &name, bool initialises) {
    const std::string id = "touch@" + unit.mainFile.str();
    defines(id);
    Fact global;
    global.kind = FactKind::Global;
    global.name = name;
    unit.functions[id].blocks.back().facts.push_back(global);
    if (initialises)
      unit.globalInit = id;
    return *this;
  }

  operator Unit() const { return unit; }

private:
  Unit unit;
  std::uint32_t line = 0;
};

TEST(Programs, NothingMakesNoProgramOfFiles) { EXPECT_EQ(groupPrograms({}), Groups{{}}); }

TEST(Programs, OneMainTakesEverything) {
  EXPECT_EQ(groupPrograms({UnitMaker("/p/main.cpp").main(), UnitMaker("/p/registered.cpp").defines("reg")}),
            (Groups{{0, 1}}));
}

TEST(Programs, UnitsWithoutMainThatFitAreOneProgram) {
  EXPECT_EQ(groupPrograms({UnitMaker("/p/a.cpp").defines("a"), UnitMaker("/p/b.cpp").defines("b")}),
            (Groups{{0, 1}}));
}

TEST(Programs, EachMainTakesWhatItReaches) {
  const std::vector<Unit> units = {
      UnitMaker("/p/train.cpp").main({"load"}), UnitMaker("/p/eval.cpp").main({"score"}),
      UnitMaker("/p/load.cpp").defines("load", {"read"}), UnitMaker("/p/read.cpp").defines("read"),
      UnitMaker("/p/score.cpp").defines("score", {"read"})};
  EXPECT_EQ(groupPrograms(units), (Groups{{0, 2, 3}, {1, 3, 4}}));
}

TEST(Programs, TheSameFunctionInTwoFilesMeansTwoPrograms) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").defines("train"),
                                   UnitMaker("/p/b.cpp").defines("train")};
  EXPECT_EQ(groupPrograms(units), (Groups{{0}, {1}}));
}

TEST(Programs, AFunctionOfAHeaderIsOneFunction) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").defines("helper", {}, "/p/h.h"),
                                   UnitMaker("/p/b.cpp").defines("helper", {}, "/p/h.h")};
  EXPECT_EQ(groupPrograms(units), (Groups{{0, 1}}));
}

TEST(Programs, TheSameClassInTwoFilesMeansTwoPrograms) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main().hasType("Net", "/p/a.cpp"),
                                   UnitMaker("/p/b.cpp").hasType("Net", "/p/b.cpp")};
  EXPECT_EQ(groupPrograms(units), (Groups{{0}, {1}}));
}

TEST(Programs, TypesOfUnnamedNamespacesExcludeNobody) {
  const std::string type = "(anonymous namespace)::Options";
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main().hasType(type, "/p/a.cpp"),
                                   UnitMaker("/p/b.cpp").hasType(type, "/p/b.cpp")};
  EXPECT_EQ(groupPrograms(units), (Groups{{0, 1}}));
}

TEST(Programs, OfTwoDefinitionsTheNearestIsMeant) {
  const std::vector<Unit> units = {
      UnitMaker("/p/one/main.cpp").main({"util"}), UnitMaker("/p/one/util.cpp").defines("util"),
      UnitMaker("/p/two/main.cpp").main({"util"}), UnitMaker("/p/two/util.cpp").defines("util")};
  EXPECT_EQ(groupPrograms(units), (Groups{{0, 1}, {2, 3}}));
}

TEST(Programs, WhatNoMainReachesIsAProgramAlongItsCalls) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main({"shared"}),
                                   UnitMaker("/p/b.cpp").main(),
                                   UnitMaker("/p/shared.cpp").defines("shared"),
                                   UnitMaker("/p/lib.cpp").defines("lib", {"shared", "detail"}),
                                   UnitMaker("/p/detail.cpp").defines("detail"),
                                   UnitMaker("/p/alone.cpp").defines("alone")};
  EXPECT_EQ(groupPrograms(units), (Groups{{0, 2}, {1}, {2, 3, 4}, {5}}));
}

TEST(Programs, ASharedGlobalIsADependency) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main().touches("device", false),
                                   UnitMaker("/p/b.cpp").main(),
                                   UnitMaker("/p/config.cpp").touches("device", true)};
  EXPECT_EQ(groupPrograms(units), (Groups{{0, 2}, {1}}));
}

TEST(Programs, EveryUnitIsInSomeProgram) {
  std::vector<Unit> units;
  for (int i = 0; i < 12; ++i) {
    const std::string name = std::to_string(i);
    UnitMaker maker("/p/" + name + ".cpp");
    maker.defines("f" + std::to_string(i % 3), {"f" + std::to_string((i + 1) % 3)});
    if (i % 4 == 0)
      maker.main({"f" + std::to_string(i % 3)});
    units.push_back(maker);
  }
  std::set<std::size_t> covered;
  for (const auto &program : groupPrograms(units))
    for (std::size_t unit : program)
      covered.insert(unit);
  EXPECT_EQ(covered.size(), units.size());
}

} // namespace
