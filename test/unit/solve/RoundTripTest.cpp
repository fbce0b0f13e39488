// Facts as text and as bytes: what is written is read back the same.
#include "analyzer/facts/Binary.h"
#include "analyzer/facts/Text.h"

#include "gtest/gtest.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace devicetidy::test {
namespace {

/// Makes units that use every member of the facts, with names that are hard to write.
class RandomUnit {
public:
  explicit RandomUnit(std::uint64_t seed) : random(seed) {}

  Unit make() {
    Unit unit;
    unit.mainFile = name();
    unit.torchMajor = number(0, 3);
    unit.torchMinor = number(0, 30);
    unit.hasFatalError = flip();
    unit.isCuda = flip();
    if (flip())
      unit.globalInit = name();
    for (int i = number(0, 3); i > 0; --i)
      unit.parseErrors.push_back(name().str());
    for (int i = number(0, 3); i > 0; --i)
      unit.files.push_back(name());
    for (int i = number(0, 2); i > 0; --i)
      unit.objects.push_back(name());
    for (int i = number(0, 2); i > 0; --i)
      unit.skippedFunctions.push_back(name());
    for (int i = number(0, 2); i > 0; --i)
      unit.uninstantiated.push_back(name());
    if (flip())
      unit.opaqueExpressions["CoyieldExpr"] = 3;
    for (int i = number(0, 4); i > 0; --i)
      addType(unit);
    for (int i = number(0, 3); i > 0; --i)
      addGlobal(unit);
    for (int i = number(0, 4); i > 0; --i)
      addFunction(unit);
    return unit;
  }

private:
  int number(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }
  bool flip() { return number(0, 1) == 1; }

  Name name() {
    static const char *const all[] = {"at::Tensor",
                                      "x",
                                      "at::Tensor::operator()",
                                      "std::map<std::basic_string<char>, at::Tensor>",
                                      "operator=",
                                      "two words",
                                      "a \"quoted\" name",
                                      "back\\slash",
                                      "line\nbreak",
                                      "tab\tand\rreturn",
                                      "\x01\x7f",
                                      "%1",
                                      "@3:4-5",
                                      "#comment",
                                      "(a, b)",
                                      "text",
                                      "ref",
                                      "const",
                                      "caf\xc3\xa9",
                                      "c:@S@Net@F@forward#$@N@at@S@Tensor#",
                                      "/src/a-b.cpp",
                                      "~Net",
                                      "==",
                                      "none"};
    return all[number(0, static_cast<int>(std::size(all)) - 1)];
  }

  std::vector<Name> names() {
    std::vector<Name> result;
    for (int i = number(0, 3); i > 0; --i)
      result.push_back(name());
    return result;
  }

  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> result;
    for (int i = number(0, 3); i > 0; --i)
      result.push_back(number(-5, 5));
    return result;
  }

  Location location() {
    Location where;
    if (number(0, 3) == 0)
      return where;
    where.file = flip() ? Name("/src/main file.cpp") : Name("/src/net.h");
    where.line = static_cast<std::uint32_t>(number(1, 90000));
    where.column = static_cast<std::uint32_t>(number(1, 200));
    where.endLine = flip() ? where.line : where.line + 3;
    where.endColumn = static_cast<std::uint32_t>(number(1, 200));
    return where;
  }

  Operand operand() {
    Operand result;
    result.reg = number(0, 30);
    result.isAddress = flip();
    if (flip())
      result.type = name();
    if (flip())
      result.text = name();
    result.where = location();
    return result;
  }

  void addType(Unit &unit) {
    Type type;
    type.id = name();
    type.kind = static_cast<TypeKind>(number(0, 9));
    if (type.kind == TypeKind::Record)
      type.templateName = name();
    if (type.kind == TypeKind::Pointer || type.kind == TypeKind::Array)
      type.pointee = name();
    type.args = names();
    type.numbers = numbers();
    type.isProject = flip();
    type.isPolymorphic = flip();
    type.isAbstract = flip();
    type.isLambda = flip();
    type.bases = names();
    type.constructors = names();
    type.methods = names();
    type.where = location();
    for (int i = number(0, 3); i > 0; --i)
      type.fields.push_back({name(), name(), flip(), flip(), location()});
    unit.types[type.id] = type;
  }

  void addGlobal(Unit &unit) {
    const Name id = name();
    unit.globals[id] = {id, name(), name(), flip(), location()};
  }

  Fact fact() {
    Fact fact;
    fact.kind = static_cast<FactKind>(number(0, static_cast<int>(FactKind::EndStatement)));
    fact.where = location();
    switch (fact.kind) {
    case FactKind::EndStatement:
      return fact;
    case FactKind::Declare:
    case FactKind::EndScope:
      fact.number = number(0, 9);
      return fact;
    case FactKind::Local:
      fact.number = number(0, 9);
      break;
    case FactKind::Literal:
      fact.literal = static_cast<LiteralKind>(number(1, 6));
      if (fact.literal == LiteralKind::String || fact.literal == LiteralKind::Float)
        fact.name = flip() ? name() : Name();
      else if (fact.literal != LiteralKind::Null)
        fact.number = number(-100000, 100000);
      break;
    case FactKind::Global:
    case FactKind::Field:
    case FactKind::Call:
    case FactKind::Construct:
    case FactKind::Closure:
    case FactKind::Operator:
      fact.name = name();
      break;
    default:
      break;
    }
    if (fact.kind != FactKind::Store)
      fact.result = number(0, 30);
    for (int i = number(0, 3); i > 0; --i)
      fact.operands.push_back(operand());
    if (flip())
      fact.type = name();
    if (fact.kind == FactKind::Call) {
      fact.hasObject = flip();
      fact.isVirtual = flip();
      fact.isIndirect = flip();
      fact.resultIsAddress = flip();
      fact.isDiscarded = flip();
      fact.inMacro = flip();
      fact.inMacroArgument = flip();
      fact.isObjectAssignable = flip();
      fact.isObjectPointee = flip();
      fact.isLaunch = flip();
      fact.templateTypes = names();
      fact.templateNumbers = numbers();
    }
    if (flip())
      fact.target = name();
    fact.captures = names();
    return fact;
  }

  Terminator terminator(int blocks) {
    Terminator end;
    end.kind = static_cast<TerminatorKind>(number(0, 4));
    end.where = location();
    auto block = [&] { return number(0, blocks - 1); };
    if (end.kind == TerminatorKind::Jump)
      end.successors = {block()};
    if (end.kind == TerminatorKind::Branch) {
      end.successors = {block(), block()};
      end.entersLoop = flip();
      if (flip())
        end.value = operand();
    }
    if (end.kind == TerminatorKind::Switch) {
      end.value = operand();
      end.cases = numbers();
      for (std::size_t i = 0; i <= end.cases.size(); ++i)
        end.successors.push_back(block());
    }
    if (end.kind == TerminatorKind::Return && flip())
      end.value = operand();
    return end;
  }

  void addFunction(Unit &unit) {
    Function function;
    function.id = name();
    function.name = name();
    if (flip())
      function.className = name();
    if (flip())
      function.resultType = name();
    for (bool Function::*flag :
         {&Function::resultIsReference, &Function::isConstructor, &Function::isDestructor,
          &Function::isStatic, &Function::isConst, &Function::isVirtual, &Function::isLambda,
          &Function::isMain, &Function::isPrivate, &Function::isVariadicTail})
      function.*flag = flip();
    function.overrides = names();
    function.paramCount = static_cast<std::uint32_t>(number(0, 3));
    function.requiredParams = static_cast<std::uint32_t>(number(0, 3));
    function.registerCount = 40;
    function.where = location();
    for (int i = number(0, 4); i > 0; --i)
      function.locals.push_back({name(), name(), flip(), false, location()});
    const int blocks = number(0, 4);
    function.hasBody = blocks > 0;
    for (int i = 0; i < blocks; ++i) {
      Block block;
      for (int j = number(0, 6); j > 0; --j)
        block.facts.push_back(fact());
      block.terminator = terminator(blocks);
      block.handler = flip() ? number(0, blocks - 1) : -1;
      block.isLoopHead = flip();
      if (flip())
        block.variesInLoop = {0, 3};
      function.blocks.push_back(std::move(block));
    }
    unit.functions[function.id] = std::move(function);
  }

  std::mt19937_64 random;
};

std::string bytes(const Unit &unit) { return writeBinary({unit}); }

// The bytes hold every member, so equal bytes are equal units.
void expectSameThroughText(const Unit &unit) {
  const std::string text = writeText(unit);
  std::string error;
  const std::optional<Unit> read = readText(text, error);
  ASSERT_TRUE(read) << error << "\n" << text;
  EXPECT_EQ(writeText(*read), text);
  EXPECT_TRUE(bytes(*read) == bytes(unit)) << text;
}

void expectSameThroughBytes(const Unit &unit) {
  const std::string written = bytes(unit);
  std::string error;
  const std::optional<std::vector<Unit>> read = readBinary(written, error);
  ASSERT_TRUE(read) << error;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_TRUE(bytes(read->front()) == written);
  EXPECT_EQ(writeText(read->front()), writeText(unit));
}

TEST(Facts, RandomUnitsAreReadBackFromText) {
  for (std::uint64_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed)
    expectSameThroughText(RandomUnit(seed).make());
}

TEST(Facts, RandomUnitsAreReadBackFromBytes) {
  for (std::uint64_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed)
    expectSameThroughBytes(RandomUnit(seed).make());
}

TEST(Facts, ManyUnitsAreReadBackInOrder) {
  std::vector<Unit> units;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    units.push_back(RandomUnit(seed).make());
  std::string error;
  const auto read = readBinary(writeBinary(units), error);
  ASSERT_TRUE(read) << error;
  ASSERT_EQ(read->size(), units.size());
  for (std::size_t i = 0; i < units.size(); ++i)
    EXPECT_TRUE(bytes((*read)[i]) == bytes(units[i])) << i;
}

TEST(Facts, NoPartOfTheBytesIsAWhole) {
  const std::string whole = bytes(RandomUnit(7).make());
  for (std::size_t size = 1; size < whole.size(); ++size) {
    std::string error;
    EXPECT_FALSE(readBinary(std::string_view(whole).substr(0, size), error)) << size;
    EXPECT_FALSE(error.empty());
  }
}

TEST(Facts, WhatGoesWithUnitsIsReadBack) {
  FactsFile file;
  file.units.push_back(RandomUnit(3).make());
  file.roots = {Name("/project"), Name("/other")};
  file.sources = {{Name("/project/a.cpp"), ~std::uint64_t{0}, 1}, {Name("/project/b.h"), 0, 1ull << 63}};
  file.shard = {2, 3, 1000, ~std::uint64_t{0}, 5};
  std::string error;
  const std::optional<FactsFile> read = readFacts(writeFacts(file), error);
  ASSERT_TRUE(read) << error;
  EXPECT_EQ(read->roots, file.roots);
  ASSERT_EQ(read->sources.size(), 2u);
  EXPECT_EQ(read->sources[0].path, file.sources[0].path);
  EXPECT_EQ(read->sources[0].digestHigh, ~std::uint64_t{0});
  EXPECT_EQ(read->sources[1].digestLow, 1ull << 63);
  EXPECT_EQ(read->shard.index, 2u);
  EXPECT_EQ(read->shard.count, 3u);
  EXPECT_EQ(read->shard.total, 1000u);
  EXPECT_EQ(read->shard.listHigh, ~std::uint64_t{0});
  EXPECT_EQ(read->shard.listLow, 5u);
}

TEST(Facts, EveryChangedByteIsNoticed) {
  const std::string whole = bytes(RandomUnit(7).make());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole, error;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(readBinary(damaged, error)) << at;
    EXPECT_FALSE(error.empty());
  }
}

// Damage is found, or leads to other facts; it never crashes.
TEST(Facts, DamagedBytesAndTextAreSurvived) {
  std::mt19937_64 random(31);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Unit unit = RandomUnit(seed).make();
    for (std::string damaged : {bytes(unit), writeText(unit)}) {
      for (int i = 0; i < 5; ++i)
        damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
      std::string error;
      if (const auto units = readBinary(damaged, error); !units) {
        EXPECT_FALSE(error.empty());
      }
      if (const auto read = readText(damaged, error); read)
        writeText(*read);
    }
  }
}

TEST(Facts, BadTextNamesItsLine) {
  std::string error;
  EXPECT_FALSE(readText("unit /a.cpp\nfunction f\n  block 0\n    %0 = nonsense\n", error));
  EXPECT_EQ(error.substr(0, 7), "line 4:") << error;
  EXPECT_FALSE(readText("function f\n  block 1\n", error));
  EXPECT_EQ(error.substr(0, 7), "line 2:") << error;
}

// Facts as clang makes them: those of the five training systems, when the tool is built.
TEST(Facts, OfTheTrainingSystemsAreReadBack) {
  namespace fs = std::filesystem;
  const fs::path tool = DEVICE_TIDY_TOOL,
                 database = tool.parent_path().parent_path() / "compile_commands.json";
  if (!fs::exists(tool) || !fs::exists(database))
    GTEST_SKIP() << tool << " is not built";
  const fs::path written =
      fs::temp_directory_path() / ("device-tidy-facts-" + std::to_string(std::random_device()()));
  std::string command = "\"" + tool.string() + "\" --quiet -p \"" + database.parent_path().string() +
                        "\" --emit-facts=\"" + written.string() + "\"";
  for (const char *system : {"easyedit-memit", "glm4-loss", "minicpm-zero3", "qwen-finetune", "qwen-lora"})
    for (const fs::directory_entry &file :
         fs::directory_iterator(fs::path(DEVICE_TIDY_SOURCE_DIR "/test/systems") / system / "broken"))
      if (file.path().extension() == ".cpp")
        command += " \"" + file.path().string() + "\"";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::ostringstream content;
  content << std::ifstream(written, std::ios::binary).rdbuf();
  fs::remove(written);
  std::string error;
  std::optional<FactsFile> file = readFacts(content.str(), error);
  ASSERT_TRUE(file) << error;
  EXPECT_GE(file->units.size(), 5u);
  EXPECT_GE(file->sources.size(), 5u);
  EXPECT_FALSE(file->roots.empty());
  EXPECT_TRUE(writeFacts(*file) == content.str());
  for (Unit &unit : file->units) {
    // The text does not say whether a local is const.
    for (auto &[id, function] : unit.functions)
      for (Variable &local : function.locals)
        local.isConst = false;
    expectSameThroughText(unit);
  }
}

} // namespace
} // namespace devicetidy::test
