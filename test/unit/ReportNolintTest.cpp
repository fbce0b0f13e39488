#include "analyzer/report/diagnostic/NoLint.h"
#include "analyzer/report/diagnostic/NoLintPlanner.h"
#include "analyzer/report/diagnostic/SelectFixes.h"
#include "analyzer/report/source/Tokens.h"

#include "gtest/gtest.h"

using namespace devicetidy;

namespace {

constexpr const char *Check = "device-mixed-op";

/// Is a finding of `Check` at `line` suppressed?
bool isSuppressed(const std::string &source, std::uint32_t line, std::uint32_t column = 1) {
  const NoLintFile comments = readNoLint(source);
  const Location where{Name("suppressed.cpp"), line, column, line, column};
  return comments.suppressesLine(Check, where) || comments.suppressesPart(Check, where);
}

/// `source` with the comment for a finding of `Check` at `line`; empty when none can be written.
std::string suppressed(const std::string &source, std::uint32_t line) {
  const Name file("suppressed.cpp");
  SourceCache sources;
  sources.provide(file, source);
  Diagnostic diagnostic;
  diagnostic.check = Check;
  diagnostic.where = {file, line, 1};
  const std::optional<Fix> fix = NoLintPlanner(sources).plan(diagnostic);
  return fix ? withChanges(source, {fix->change}) : std::string();
}

bool matches(const std::string &list) { return isSuppressed("x; // NOLINT(" + list + ")", 1); }

std::vector<std::string> cut(std::string_view source) {
  std::vector<std::string> texts;
  for (const Token &token : tokenize(source))
    texts.emplace_back(token.text);
  return texts;
}

TEST(NoLint, SpeaksOfItsLine) {
  EXPECT_TRUE(isSuppressed("x; // NOLINT\ny;", 1));
  EXPECT_FALSE(isSuppressed("x; // NOLINT\ny;", 2));
  EXPECT_TRUE(isSuppressed("// NOLINTNEXTLINE\nx;", 2));
  EXPECT_FALSE(isSuppressed("// NOLINTNEXTLINE\nx;", 1));
  EXPECT_TRUE(isSuppressed("/* a\nb NOLINT\n*/", 2)); // a line of a longer comment
}

TEST(NoLint, ReadsLists) {
  EXPECT_TRUE(matches("device-mixed-op"));
  EXPECT_TRUE(matches("a, device-*"));
  EXPECT_TRUE(matches("*mixed*"));
  EXPECT_TRUE(matches("d*v*e-m*op"));
  EXPECT_TRUE(matches("device-*,-device-mixed-op")); // removals are left aside
  EXPECT_FALSE(matches(""));
  EXPECT_FALSE(matches("device-mixed"));
  EXPECT_FALSE(matches("-*"));
  EXPECT_FALSE(matches("device-loss-input"));
}

TEST(NoLint, TakesAListWithoutItsEndForNone) {
  EXPECT_TRUE(isSuppressed("x; // NOLINT(other\n// )", 1));
  EXPECT_FALSE(isSuppressed("x; // NOLINT (other), NOLINT(other)", 2));
  EXPECT_TRUE(isSuppressed("x; // NOLINT (other)", 1)); // the list follows without a space
}

TEST(NoLint, WantsTheWholeWord) {
  EXPECT_FALSE(isSuppressed("x; // NOLINTED", 1));
  EXPECT_FALSE(isSuppressed("x; // NOLINTnextline", 1));
  EXPECT_FALSE(isSuppressed("x; // nolint", 1));
  EXPECT_TRUE(isSuppressed("x; // XNOLINT, as clang-tidy reads it", 1));
  EXPECT_TRUE(isSuppressed("x; // NOLINTED NOLINT(device-*) NOLINT(other)", 1));
}

TEST(NoLint, ReadsCommentsOnly) {
  EXPECT_FALSE(isSuppressed("f(\"// NOLINT\");", 1));
  EXPECT_FALSE(isSuppressed("f(R\"a(\" // NOLINT )\" )a\");", 1));
  EXPECT_FALSE(isSuppressed("NOLINT;", 1));
  EXPECT_TRUE(isSuppressed("f('\"'); // NOLINT \"", 1));
  EXPECT_TRUE(isSuppressed("f(1'000'000); // NOLINT", 1));
  EXPECT_TRUE(isSuppressed("#error don't\nx; // NOLINT", 2));
  EXPECT_TRUE(isSuppressed("// a \\\n NOLINT", 2)); // the comment goes on
}

TEST(NoLint, CoversBlocks) {
  const std::string source = "a; // NOLINTBEGIN(device-*)\nb;\nc; // NOLINTEND(device-*)\nd;";
  EXPECT_FALSE(isSuppressed(source, 1, 1));
  EXPECT_TRUE(isSuppressed(source, 2));
  EXPECT_TRUE(isSuppressed(source, 3, 1));
  EXPECT_FALSE(isSuppressed(source, 4));
}

TEST(NoLint, NestsBlocks) {
  const std::string source = "// NOLINTBEGIN(x)\n// NOLINTBEGIN\na;\n// NOLINTEND\nb;\n// NOLINTEND(x)\n";
  EXPECT_TRUE(readNoLint(source).unmatched.empty());
  EXPECT_TRUE(isSuppressed(source, 3));
  EXPECT_FALSE(isSuppressed(source, 5));
}

TEST(NoLint, ReportsWhatHasNoCounterpart) {
  const NoLintFile file =
      readNoLint("// NOLINTBEGIN(a)\n// NOLINTEND(b)\n  // NOLINTEND( a )\n// NOLINTBEGIN\n");
  ASSERT_EQ(file.unmatched.size(), 2u);
  EXPECT_EQ(file.unmatched[0].line, 2u);
  EXPECT_FALSE(file.unmatched[0].isBegin);
  EXPECT_EQ(file.unmatched[1].line, 4u);
  EXPECT_EQ(file.unmatched[1].column, 4u);
  EXPECT_TRUE(file.unmatched[1].isBegin);
}

TEST(NoLintPlanner, AddsWhatSuppresses) {
  EXPECT_EQ(suppressed("a;\nb; \nc;\n", 2), "a;\nb; // NOLINT(device-mixed-op) \nc;\n");
  EXPECT_EQ(suppressed("a;\r\nb;\r\n", 1), "a; // NOLINT(device-mixed-op)\r\nb;\r\n");
  EXPECT_EQ(suppressed("a; // why", 1), "a; // why // NOLINT(device-mixed-op)");
  EXPECT_EQ(suppressed("a; // NOLINT(x)", 1), "a; // NOLINT(x, device-mixed-op)");
  EXPECT_EQ(suppressed("a; /* NOLINT( ) */", 1), "a; /* NOLINT( device-mixed-op) */");
  EXPECT_EQ(suppressed("a; // NOLINTNEXTLINE(x)", 1), "a; // NOLINTNEXTLINE(x) // NOLINT(device-mixed-op)");
  EXPECT_EQ(suppressed("a; \"NOLINT(x)\";", 1), "a; \"NOLINT(x)\"; // NOLINT(device-mixed-op)");
  for (const char *source : {"a;", "a; // NOLINT(x)", "a; // NOLINT()", "/* b */ a; /* c */"})
    EXPECT_TRUE(isSuppressed(suppressed(source, 1), 1)) << source;
}

TEST(NoLintPlanner, LeavesWhatGoesOn) {
  EXPECT_EQ(suppressed("#define A a; \\\n  b\n", 1), "");
  EXPECT_EQ(suppressed("a(R\"(\n)\");\n", 1), "");
  EXPECT_EQ(suppressed("a; /* so\n*/\n", 1), "");
  EXPECT_EQ(suppressed("a;", 7), "");
}

TEST(Tokens, CutsLiterals) {
  EXPECT_EQ(cut("u8R\"x(a)\" )x\" L'\\'' \"\\\"\"s"),
            (std::vector<std::string>{"u8R\"x(a)\" )x\"", "L'\\''", "\"\\\"\"", "s"}));
  EXPECT_EQ(cut("1'000.5e-3f+2"), (std::vector<std::string>{"1'000.5e-3f", "+", "2"}));
  EXPECT_EQ(cut("a->b::c+=d"), (std::vector<std::string>{"a", "->", "b", "::", "c", "+=", "d"}));
}

TEST(Tokens, SurviveWhatDoesNotEnd) {
  EXPECT_EQ(cut("/* a"), (std::vector<std::string>{"/* a"}));
  EXPECT_EQ(cut("\"a\nb"), (std::vector<std::string>{"\"a", "b"}));
  EXPECT_EQ(cut("R\"("), (std::vector<std::string>{"R\"("}));
  EXPECT_EQ(cut("'\\"), (std::vector<std::string>{"'\\"}));
  EXPECT_EQ(cut("R\"12345678901234567890("), (std::vector<std::string>{"R\"12345678901234567890("}));
}

} // namespace
