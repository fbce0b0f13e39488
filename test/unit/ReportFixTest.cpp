#include "analyzer/driver/commands/ApplyFixes.h"
#include "analyzer/report/diagnostic/SelectFixes.h"
#include "analyzer/report/fix/FixPlanner.h"
#include "analyzer/report/source/ExpressionText.h"

#include "gtest/gtest.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

using namespace devicetidy;

namespace {

/// The tokens of a text, and the text itself.
class Expression {
public:
  explicit Expression(std::string written) : text(std::move(written)), tokens(tokenize(text)) {}
  TokenRange range() const { return {tokens.data(), tokens.data() + tokens.size()}; }
  std::string part(TokenRange range) const {
    return text.substr(range[0].begin, range.last[-1].end - range[0].begin);
  }

private:
  std::string text;
  std::vector<Token> tokens;
};

bool postfix(const char *text) { return isPostfix(Expression(text).range()); }
bool repeatable(const char *text) { return isRepeatable(Expression(text).range()); }
std::string viewed(const char *text) {
  const Expression expression(text);
  return expression.part(withoutViews(expression.range()));
}

Diagnostic fixed(std::size_t offset, std::size_t length, const std::string &text) {
  Diagnostic diagnostic;
  diagnostic.fix = Fix{"", {{"/p/a.cpp", 1, 1, 1, 1}, offset, length, text}};
  return diagnostic;
}

std::string read(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Expression, KnowsWhatNeedsParentheses) {
  for (const char *text : {"x", "a.b->c", "f(x + y)", "v[i + 1]", "(a + b)", "torch::randn({2}, o)", "A{1}"})
    EXPECT_TRUE(postfix(text)) << text;
  for (const char *text : {"a + b", "-x", "*p", "!x", "a ? b : c", "new T", "f<int>(x)", "a b", "x.", "f("})
    EXPECT_FALSE(postfix(text)) << text;
}

TEST(Expression, KnowsWhatMayBeRepeated) {
  for (const char *text : {"x", "a.b->c", "this->x", "v[0]", "v[i + 1].t", "n::x"})
    EXPECT_TRUE(repeatable(text)) << text;
  for (const char *text : {"f()", "a.b()", "v[next()]", "++i", "a + b", "*p", "v[i++]", "", "x[a = b]"})
    EXPECT_FALSE(repeatable(text)) << text;
}

TEST(Expression, LooksThroughViews) {
  EXPECT_EQ(viewed("x[0]"), "x");
  EXPECT_EQ(viewed("a.b[i].view({2, 3}).index({0, k[1]})"), "a.b");
  EXPECT_EQ(viewed("x.to(d)"), "x.to(d)");
  EXPECT_EQ(viewed("f(x)"), "f(x)");
  EXPECT_EQ(viewed("x.to(d)[0]"), "x.to(d)");
  EXPECT_EQ(viewed("[x](y)"), "[x](y)");
}

TEST(Expression, SplitsArguments) {
  const Expression list("{1, 2}, f(a, b), c");
  const auto parts = splitArguments(list.range());
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(list.part(parts[1]), "f(a, b)");
  EXPECT_TRUE(splitArguments({}).empty());
}

TEST(Macros, AreCollected) {
  std::set<std::string, std::less<>> names;
  collectMacros("#define A 1\n  #  define B(x) x\n// define C\nint define; #define", names);
  EXPECT_EQ(names, (std::set<std::string, std::less<>>{"A", "B"}));
}

TEST(SelectFixes, MakesEqualOnesOnce) {
  const FixSelection selection = selectFixes({fixed(5, 1, "a"), fixed(5, 1, "a"), fixed(1, 1, "b")});
  EXPECT_EQ(selection.isChosen, (std::vector<bool>{true, true, true}));
  ASSERT_EQ(selection.changes.size(), 2u);
  EXPECT_EQ(selection.changes[0].offset, 1u);
  EXPECT_TRUE(selection.conflicting.empty());
}

TEST(SelectFixes, MakesNeitherOfTwoThatContradict) {
  const FixSelection selection = selectFixes({fixed(5, 1, "a"), fixed(5, 1, "b")});
  EXPECT_TRUE(selection.changes.empty());
  EXPECT_EQ(selection.conflicting.size(), 2u);
}

TEST(SelectFixes, KeepsTheFirstOfTwoThatOverlap) {
  const FixSelection selection = selectFixes({fixed(5, 4, "a"), fixed(8, 4, "b"), fixed(12, 1, "c")});
  EXPECT_EQ(selection.isChosen, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(selection.conflicting.size(), 1u);
}

TEST(SelectFixes, LeavesSuppressedOnes) {
  std::vector<Diagnostic> diagnostics = {fixed(5, 1, "a"), {}};
  diagnostics[0].isSuppressed = true;
  EXPECT_TRUE(selectFixes(diagnostics).changes.empty());
}

TEST(Changes, KeepLineEnds) {
  const std::vector<Replacement> changes = {{{}, 0, 1, "(x)"}, {{}, 6, 0, "y"}};
  EXPECT_EQ(withChanges("x;\r\n; \r\n", changes), "(x);\r\n; y\r\n");
  EXPECT_EQ(withChanges("", {}), "");
}

class ApplyTest : public testing::Test {
protected:
  ApplyTest() { std::ofstream(path, std::ios::binary) << "x + y;\r\n"; }
  ~ApplyTest() override { std::remove(path.c_str()); }
  const std::string path = testing::TempDir() + "device-tidy-apply.cpp";
  const std::vector<Replacement> changes = {{{path, 1, 5, 1, 6}, 4, 1, "y.to(x.device())"}};
  SourceCache sources;
};

TEST_F(ApplyTest, ReplacesTheFileAndKeepsItsPermissions) {
  chmod(path.c_str(), 0640);
  EXPECT_EQ(driver::applyFixes(changes, sources).files, 1u);
  EXPECT_EQ(read(path), "x + y.to(x.device());\r\n");
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST_F(ApplyTest, LeavesAFileThatChangedMeanwhile) {
  sources.text(path);
  std::ofstream(path, std::ios::binary) << "x * y;\r\n";
  const driver::AppliedFixes applied = driver::applyFixes(changes, sources);
  ASSERT_EQ(applied.errors.size(), 1u);
  EXPECT_NE(applied.errors[0].find("changed while it was analysed"), std::string::npos);
  EXPECT_EQ(read(path), "x * y;\r\n");
}

TEST_F(ApplyTest, WritesThroughSymbolicLinks) {
  const std::string link = path + ".link";
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  std::vector<Replacement> linked = changes;
  linked[0].where.file = link;
  EXPECT_EQ(driver::applyFixes(linked, sources).files, 1u);
  struct stat status = {};
  ASSERT_EQ(lstat(link.c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(read(path), "x + y.to(x.device());\r\n");
  std::remove(link.c_str());
}

TEST_F(ApplyTest, SaysWhichFileIsMissing) {
  std::remove(path.c_str());
  const driver::AppliedFixes applied = driver::applyFixes(changes, sources);
  ASSERT_EQ(applied.errors.size(), 1u);
  EXPECT_NE(applied.errors[0].find(path), std::string::npos);
}

} // namespace
