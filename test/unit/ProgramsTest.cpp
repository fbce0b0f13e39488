#include "analyzer/driver/programs/Programs.h"

#include "gtest/gtest.h"

#include <set>

using namespace devicetidy;
using Groups = std::vector<std::vector<std::size_t>>;

namespace {

Groups groupsOf(const std::vector<Unit> &units, const driver::LinkMap &links = {}) {
  Groups groups;
  for (const driver::Group &each : driver::groupPrograms(units, links).groups)
    groups.push_back(each.units);
  return groups;
}

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
    last = id;
    return *this;
  }

  /// The build makes `object` of it.
  UnitMaker &makes(const std::string &object) {
    unit.objects.push_back(object);
    return *this;
  }

  /// What the last function does differs from what it does elsewhere.
  UnitMaker &variant(std::int64_t number) {
    Fact literal;
    literal.kind = FactKind::Literal;
    literal.number = number;
    unit.functions[last].blocks.back().facts.push_back(literal);
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

  /// It is a module.
  UnitMaker &imports(std::vector<Name> files, Joining joining = Joining::Imported) {
    unit.imports = std::move(files);
    unit.joining = joining;
    return *this;
  }

  operator Unit() const { return unit; }

private:
  Unit unit;
  Name last;
  std::uint32_t line = 0;
};

TEST(Programs, NothingMakesNoProgram) { EXPECT_EQ(groupsOf({}), Groups()); }

TEST(Programs, OneMainTakesEverything) {
  EXPECT_EQ(groupsOf({UnitMaker("/p/main.cpp").main(), UnitMaker("/p/registered.cpp").defines("reg")}),
            (Groups{{0, 1}}));
}

TEST(Programs, UnitsWithoutMainThatFitAreOneProgram) {
  EXPECT_EQ(groupsOf({UnitMaker("/p/a.cpp").defines("a"), UnitMaker("/p/b.cpp").defines("b")}),
            (Groups{{0, 1}}));
}

TEST(Programs, EachMainTakesWhatItReaches) {
  const std::vector<Unit> units = {
      UnitMaker("/p/train.cpp").main({"load"}), UnitMaker("/p/eval.cpp").main({"score"}),
      UnitMaker("/p/load.cpp").defines("load", {"read"}), UnitMaker("/p/read.cpp").defines("read"),
      UnitMaker("/p/score.cpp").defines("score", {"read"})};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 2, 3}, {1, 3, 4}}));
}

TEST(Programs, TheSameFunctionInTwoFilesMeansTwoPrograms) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").defines("train"),
                                   UnitMaker("/p/b.cpp").defines("train")};
  EXPECT_EQ(groupsOf(units), (Groups{{0}, {1}}));
}

TEST(Programs, AFunctionOfAHeaderIsOneFunction) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").defines("helper", {}, "/p/h.h"),
                                   UnitMaker("/p/b.cpp").defines("helper", {}, "/p/h.h")};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 1}}));
}

TEST(Programs, TheSameClassInTwoFilesMeansTwoPrograms) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main().hasType("Net", "/p/a.cpp"),
                                   UnitMaker("/p/b.cpp").hasType("Net", "/p/b.cpp")};
  EXPECT_EQ(groupsOf(units), (Groups{{0}, {1}}));
}

TEST(Programs, TypesOfUnnamedNamespacesExcludeNobody) {
  const std::string type = "(anonymous namespace)::Options";
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main().hasType(type, "/p/a.cpp"),
                                   UnitMaker("/p/b.cpp").hasType(type, "/p/b.cpp")};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 1}}));
}

TEST(Programs, OfTwoDefinitionsTheNearestIsMeant) {
  const std::vector<Unit> units = {
      UnitMaker("/p/one/main.cpp").main({"util"}), UnitMaker("/p/one/util.cpp").defines("util"),
      UnitMaker("/p/two/main.cpp").main({"util"}), UnitMaker("/p/two/util.cpp").defines("util")};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 1}, {2, 3}}));
}

TEST(Programs, OfTwoDefinitionsThatAreAsNearNeitherIsMeant) {
  const std::vector<Unit> units = {UnitMaker("/p/main.cpp").main({"util"}),
                                   UnitMaker("/p/x/util.cpp").defines("util"),
                                   UnitMaker("/p/y/util.cpp").defines("util")};
  EXPECT_EQ(groupsOf(units), (Groups{{0}, {1}, {2}}));
}

TEST(Programs, WhatNoMainReachesIsAProgramAlongItsCalls) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main({"shared"}),
                                   UnitMaker("/p/b.cpp").main(),
                                   UnitMaker("/p/shared.cpp").defines("shared"),
                                   UnitMaker("/p/lib.cpp").defines("lib", {"shared", "detail"}),
                                   UnitMaker("/p/detail.cpp").defines("detail"),
                                   UnitMaker("/p/alone.cpp").defines("alone")};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 2}, {1}, {2, 3, 4}, {5}}));
}

TEST(Programs, ASharedGlobalIsADependency) {
  const std::vector<Unit> units = {UnitMaker("/p/a.cpp").main().touches("device", false),
                                   UnitMaker("/p/b.cpp").main(),
                                   UnitMaker("/p/config.cpp").touches("device", true)};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 2}, {1}}));
}

// Two programs of one build: each has a train() of its own, and both link libcommon.a.
std::vector<Unit> twoPrograms() {
  return {UnitMaker("/p/a.cpp").main({"train"}).makes("/b/a.o"),
          UnitMaker("/p/a_train.cpp").defines("train", {"place"}).makes("/b/a_train.o"),
          UnitMaker("/p/b.cpp").main({"train"}).makes("/b/b.o"),
          UnitMaker("/p/b_train.cpp").defines("train", {"place"}).makes("/b/b_train.o"),
          UnitMaker("/p/place.cpp").defines("place").makes("/b/place.o"),
          UnitMaker("/p/unused.cpp").defines("unused", {"place"}).makes("/b/unused.o")};
}

TEST(Programs, TheLinkerSaysWhichDefinitionIsMeant) {
  driver::LinkMap links;
  links.addLink("/b/a", {"/b/a.o", "/b/a_train.o", "/b/libcommon.a"});
  links.addLink("/b/b", {"/b/b.o", "/b/b_train.o", "/b/libcommon.a"});
  links.addLink("/b/libcommon.a", {"/b/place.o", "/b/unused.o"});
  EXPECT_EQ(groupsOf(twoPrograms(), links), (Groups{{0, 1, 4}, {2, 3, 4}, {4, 5}}));
}

TEST(Programs, TheLinkerIsRightWhereNamesMislead) {
  driver::LinkMap links;
  links.addLink("/b/a", {"/b/a.o", "/b/b_train.o", "/b/libcommon.a"});
  links.addLink("/b/b", {"/b/b.o", "/b/a_train.o", "/b/libcommon.a"});
  links.addLink("/b/libcommon.a", {"/b/place.o", "/b/unused.o"});
  EXPECT_EQ(groupsOf(twoPrograms(), links), (Groups{{0, 3, 4}, {1, 2, 4}, {4, 5}}));
}

TEST(Programs, LibrariesAreLinkedThroughLibraries) {
  driver::LinkMap links;
  links.addLink("/b/a", {"/b/a.o", "/b/a_train.o", "/b/libouter.so"});
  links.addLink("/b/libouter.so", {"/b/unused.o", "/b/libinner.a"});
  links.addLink("/b/libinner.a", {"/b/place.o"});
  links.addLink("/b/b", {"/b/b.o", "/b/b_train.o"}); // its place() comes from elsewhere
  EXPECT_EQ(groupsOf(twoPrograms(), links), (Groups{{0, 1, 4}, {2, 3}, {4, 5}}));
}

TEST(Programs, WhatTheLinkerIsGivenIsLinkedThoughNobodyCallsIt) {
  driver::LinkMap links;
  links.addLink("/b/a", {"/b/a.o", "/b/a_train.o", "/b/place.o", "/b/unused.o"});
  links.addLink("/b/b", {"/b/b.o", "/b/b_train.o"});
  EXPECT_EQ(groupsOf(twoPrograms(), links), (Groups{{0, 1, 4, 5}, {2, 3}}));
}

TEST(Programs, AnExecutableThatIsMadeBeforeIsNoPart) {
  driver::LinkMap links;
  links.addLink("/b/a", {"/b/a.o", "/b/a_train.o", "/b/place.o", "/b/unused.o"});
  links.addLink("/b/b", {"/b/b.o", "/b/b_train.o", "/b/a"});
  EXPECT_EQ(groupsOf(twoPrograms(), links), (Groups{{0, 1, 4, 5}, {2, 3}}));
}

TEST(Programs, ConflictingDefinitionsOfOneImageStayWithTheirUnits) {
  std::vector<Unit> units = twoPrograms();
  units[1].types = static_cast<Unit>(UnitMaker("").hasType("Batch", "/p/a_train.cpp")).types;
  units[4].types = static_cast<Unit>(UnitMaker("").hasType("Batch", "/p/place.cpp")).types;
  driver::LinkMap links;
  links.addLink("/b/a", {"/b/a.o", "/b/a_train.o", "/b/place.o"});
  links.addLink("/b/b", {"/b/b.o", "/b/b_train.o", "/b/place.o", "/b/unused.o"});
  EXPECT_EQ(groupsOf(units, links), (Groups{{0, 1}, {2, 3, 4, 5}}));
  EXPECT_EQ(driver::groupPrograms(units, links).keptApart, 1u);
}

TEST(Programs, UnitsTheLinkerDoesNotNameFollowTheirCalls) {
  std::vector<Unit> units = twoPrograms();
  units[2].objects.clear();
  driver::LinkMap links;
  links.addLink("/b/a", {"/b/a.o", "/b/a_train.o", "/b/place.o"});
  EXPECT_EQ(groupsOf(units, links)[0], (std::vector<std::size_t>{0, 1, 4}));
  EXPECT_EQ(groupsOf(units, links)[1], (std::vector<std::size_t>{2, 3, 4}));
}

TEST(Programs, WithoutLinkInformationObjectsTellTheTarget) {
  const auto object = [](const char *target, const char *name) {
    return std::string("/b/CMakeFiles/") + target + ".dir/" + name + ".o";
  };
  const std::vector<Unit> units = {
      UnitMaker("/p/main1.cpp").main({"train"}).makes(object("one", "main1")),
      UnitMaker("/p/main2.cpp").main({"train"}).makes(object("two", "main2")),
      UnitMaker("/p/src/registered.cpp").defines("reg").makes(object("two", "registered")),
      UnitMaker("/p/train_x.cpp").defines("train").makes(object("two", "train_x")),
      UnitMaker("/p/train_y.cpp").defines("train").makes(object("one", "train_y"))};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 4}, {1, 2, 3}}));
}

TEST(Programs, OneSourceCompiledInTwoWaysIsTwoUnits) {
  const std::vector<Unit> units = {UnitMaker("/p/lib.cpp").defines("f").variant(1).makes("/b/cpu.o"),
                                   UnitMaker("/p/lib.cpp").defines("f").variant(2).makes("/b/cuda.o"),
                                   UnitMaker("/p/main1.cpp").main({"f"}).makes("/b/main1.o"),
                                   UnitMaker("/p/main2.cpp").main({"f"}).makes("/b/main2.o")};
  driver::LinkMap links;
  links.addLink("/b/one", {"/b/main1.o", "/b/cpu.o"});
  links.addLink("/b/two", {"/b/main2.o", "/b/cuda.o"});
  EXPECT_EQ(groupsOf(units, links), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groupsOf({units[0], units[1]}), (Groups{{0}, {1}}));
}

TEST(Programs, OneSourceCompiledTwiceToTheSameEffectExcludesNothing) {
  const std::vector<Unit> units = {UnitMaker("/p/lib.cpp").defines("f").variant(1).makes("/b/plain.o"),
                                   UnitMaker("/p/lib.cpp").defines("f").variant(1).makes("/b/pic.o")};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 1}}));
}

TEST(Programs, VariantsThatDefineDifferentNamesAreLinkedTogether) {
  const std::vector<Unit> units = {UnitMaker("/p/kernel.cpp").defines("avx2::f").variant(1),
                                   UnitMaker("/p/kernel.cpp").defines("plain::f").variant(2)};
  EXPECT_EQ(groupsOf(units), (Groups{{0, 1}}));
}

TEST(Programs, WhatMakeSharedConstructsIsNeeded) {
  UnitMaker main("/p/a.cpp");
  main.main().hasType("Net", "/p/net.h");
  Unit unit = main;
  unit.types["Net"].constructors = {"Net::Net"};
  Fact call;
  call.kind = FactKind::Call;
  call.target = "std::make_shared";
  call.templateTypes = {"Net"};
  unit.functions["main@/p/a.cpp"].blocks.back().facts.push_back(call);
  EXPECT_EQ(groupsOf({unit, UnitMaker("/p/b.cpp").main(), UnitMaker("/p/net.cpp").defines("Net::Net")}),
            (Groups{{0, 2}, {1}}));
}

TEST(Programs, TheOrderOfUnitsIsTheirOwn) {
  std::vector<Unit> units = twoPrograms();
  units.push_back(UnitMaker("/p/a.cpp").main({"eval"}).makes("/b/a2.o"));
  std::vector<Unit> reversed(units.rbegin(), units.rend());
  driver::orderUnits(units);
  driver::orderUnits(reversed);
  for (std::size_t i = 0; i < units.size(); ++i) {
    EXPECT_EQ(units[i].mainFile, reversed[i].mainFile);
    EXPECT_EQ(units[i].objects, reversed[i].objects);
  }
}

TEST(Programs, AMainTakesTheModulesItImports) {
  const std::vector<Unit> units = {UnitMaker("/p/train.py").main().imports({"/p/net.py"}),
                                   UnitMaker("/p/eval.py").main().imports({"/p/train.py"}),
                                   UnitMaker("/p/net.py").defines("net").imports({}),
                                   UnitMaker("/p/alone.py").defines("alone").imports({})};
  const auto groups = driver::groupPrograms(units).groups;
  EXPECT_EQ(groupsOf(units), (Groups{{0, 2}, {0, 1, 2}, {3}}));
  EXPECT_EQ(groups[0].main, 0u);
  EXPECT_EQ(groups[1].main, 1u);
  EXPECT_FALSE(groups[2].main);
  EXPECT_TRUE(groups[1].others.empty());
}

TEST(Programs, APackageHasCallersOutside) {
  const std::vector<Unit> units = {
      UnitMaker("/p/train.py").main().imports({"/p/net/core.py"}),
      UnitMaker("/p/net/core.py").defines("core").imports({"/p/net/base.py"}, Joining::Packaged),
      UnitMaker("/p/net/base.py").defines("base").imports({}, Joining::Packaged),
      UnitMaker("model").defines("model").imports({}, Joining::Everywhere)};
  const auto groups = driver::groupPrograms(units).groups;
  EXPECT_EQ(groupsOf(units), (Groups{{0, 1, 2, 3}, {1, 2, 3}})); // the script is one caller among others
  EXPECT_EQ(groups[0].others, (std::set<std::size_t>{1, 2}));
  EXPECT_TRUE(groups[1].others.empty());
  EXPECT_FALSE(groups[1].main);
}

TEST(Programs, AModuleHasOtherCallersInThreeScripts) {
  std::vector<Unit> units = {UnitMaker("/p/net.py").defines("net").imports({})};
  for (const char *script : {"/p/a.py", "/p/b.py", "/p/c.py", "/p/d.py"})
    units.push_back(UnitMaker(script).main().imports({"/p/net.py"}));
  const auto groups = driver::groupPrograms(units).groups;
  ASSERT_EQ(groups.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(groups[i].others.empty());
  EXPECT_EQ(groups[3].others, (std::set<std::size_t>{0}));
}

TEST(Programs, ModulesAndLinkedUnitsAreApart) {
  EXPECT_EQ(groupsOf({UnitMaker("/p/main.cpp").main(), UnitMaker("/p/train.py").main().imports({})}),
            (Groups{{0}, {1}}));
}

TEST(Programs, WhatIsNotStartedHasNoMain) {
  const std::vector<Unit> units = {UnitMaker("/p/train.py").main().imports({}),
                                   UnitMaker("/p/eval.py").main().imports({"/p/train.py"})};
  Unit train = units[0], eval = units[1];
  const driver::Group group = driver::groupPrograms(units).groups[1];
  adapt(train, 0, group);
  adapt(eval, 1, group);
  const Function &unstarted = train.functions.begin()->second, &started = eval.functions.begin()->second;
  EXPECT_FALSE(unstarted.isMain || unstarted.isEntry);
  EXPECT_TRUE(started.isMain && started.isEntry);
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
  for (const auto &program : groupsOf(units))
    for (std::size_t unit : program)
      covered.insert(unit);
  EXPECT_EQ(covered.size(), units.size());
}

} // namespace
