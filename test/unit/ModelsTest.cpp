// Rows of models: how they are read, and that what the tables say is defined.
#include "analyzer/models/Models.h"
#include "analyzer/models/UserModels.h"
#include "analyzer/models/bodies/Bodies.h"
#include "analyzer/solve/Solve.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace devicetidy {
namespace {

using models::Effect;

// The message, and the column from 1, of a row that is refused.
std::pair<std::string, std::size_t> refusal(std::string_view effects) {
  try {
    models::parseRow("f", effects);
  } catch (const models::RowError &error) {
    return {error.what(), error.offset + 1};
  }
  return {};
}

void collect(const Effect &effect, std::set<std::string> &calls, std::set<std::string> &values) {
  if (effect.kind == Effect::Kind::Call)
    calls.insert(effect.word);
  for (const Effect &arg : effect.args)
    collect(arg, calls, values);
}

TEST(Rows, AreReadWithTheirParts) {
  const models::Row row =
      models::parseRow("ns::f/2", "requires_same(self, arg0); write(arg1, tensor(cpu)); 'a, b'");
  EXPECT_EQ(row.name, "ns::f");
  EXPECT_EQ(row.arity, 2);
  ASSERT_EQ(row.effects.size(), 3U);
  EXPECT_EQ(row.effects[0].word, "requires_same");
  EXPECT_EQ(row.effects[0].detail(1), "arg0");
  EXPECT_EQ(row.effects[1].args[1].kind, Effect::Kind::Call);
  EXPECT_EQ(row.effects[1].args[1].detail(), "cpu");
  EXPECT_EQ(row.effects[2].kind, Effect::Kind::Text);
  EXPECT_EQ(row.effects[2].word, "a, b");
}

TEST(Rows, KnowTheOperatorsThatHaveASlash) {
  EXPECT_EQ(models::parseRow("at::operator/", "aten()").name, "at::operator/");
  EXPECT_EQ(models::parseRow("at::operator//2", "aten()").arity, 2);
  EXPECT_EQ(models::parseRow("at::operator/=", "aten()").arity, -1);
}

TEST(Rows, SayWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal("f(arg0"), std::make_pair(std::string("expected ',' or ')'"), std::size_t(7)));
  EXPECT_EQ(refusal("f() g()"),
            std::make_pair(std::string("expected ';' or the end of the row"), std::size_t(5)));
  EXPECT_EQ(refusal(""), std::make_pair(std::string("expected an effect"), std::size_t(1)));
  EXPECT_EQ(refusal("f('a)"), std::make_pair(std::string("the text has no closing quote"), std::size_t(3)));
  EXPECT_THROW(models::parseRow("f/x", "null"), models::RowError);
  EXPECT_THROW(models::parseRow("", "null"), models::RowError);
}

TEST(Models, OfTheUserTakeThePlaceOfTheTables) {
  ASSERT_FALSE(models::rows("c10::Device::is_cuda").empty());
  models::UserModels user;
  std::string error;
  const auto right = [](const Effect &) { return std::string(); };
  ASSERT_TRUE(models::readUserModels("x", "c10::Device::is_cuda: unknown()\ntype a::B: tensor # one\n", right,
                                     user, error));
  {
    const models::UsingModels use(&user);
    EXPECT_EQ(models::rows("c10::Device::is_cuda")[0].effects[0].word, "unknown");
    EXPECT_EQ(models::typeKind("a::B"), "tensor");
  }
  EXPECT_EQ(models::rows("c10::Device::is_cuda")[0].effects[0].word, "is_cuda");
  EXPECT_EQ(models::typeKind("a::B"), "");
}

TEST(Models, EveryWordOfATableIsDefined) {
  for (std::string_view name : models::modelledNames())
    for (const models::Row &row : models::rows(name))
      for (const Effect &effect : row.effects) {
        std::set<std::string> calls, values;
        collect(effect, calls, values);
        for (const std::string &word : calls)
          EXPECT_TRUE(isModelWord(word, true)) << name << ": " << word;
      }
}

TEST(Models, EveryWordIsUsedOrOffered) {
  std::set<std::string> used, values;
  for (std::string_view name : models::modelledNames())
    for (const models::Row &row : models::rows(name))
      for (const Effect &effect : row.effects)
        collect(effect, used, values);
  // Words of docs/models.md that no table needs.
  const std::set<std::string> offered = {"requires_same", "requires_host", "requires_current",
                                         "move_module",   "like",          "tensor"};
  std::ifstream mapping(DEVICE_TIDY_SOURCE_DIR "/analyzer/models/bodies/std/mapping.h");
  ASSERT_TRUE(mapping);
  std::ostringstream header; // what bodies can ask for
  header << models::bodyHeader() << mapping.rdbuf();
  for (std::string_view view : modelWords()) {
    const std::string word(view);
    const bool isForBodies = header.str().find(word + "(") != std::string::npos;
    EXPECT_TRUE(used.count(word) || isForBodies || offered.count(word)) << word;
  }
}

} // namespace
} // namespace devicetidy
