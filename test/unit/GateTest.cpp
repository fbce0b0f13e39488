#include "analyzer/driver/gate/Diff.h"
#include "analyzer/driver/support/Progress.h"
#include "analyzer/report/formats/Baseline.h"

#include "gtest/gtest.h"

using namespace devicetidy;
using namespace devicetidy::driver;

namespace {

Diagnostic at(const std::string &file, std::uint32_t line) {
  Diagnostic diagnostic;
  diagnostic.where = {Name(file), line, 1, line, 2};
  return diagnostic;
}

bool passes(std::string_view diff, const std::string &file, std::uint32_t line) {
  LineFilter filter;
  addDiff(llvm::StringRef(diff.data(), diff.size()), "/root", filter);
  return filter.passes(at(file, line));
}

TEST(Diff, GivesOutTheNewLines) {
  constexpr std::string_view diff = "diff --git a/a.cpp b/a.cpp\n--- a/a.cpp\n+++ b/a.cpp\n"
                                    "@@ -3 +3,2 @@ void f() {\n-x\n+y\n+z\n"
                                    "@@ -9,2 +10 @@\n-x\n-x\n+y\n\\ No newline at end of file\n"
                                    "--- a/b.cpp\n+++ b/b.cpp\n@@ -0,0 +1 @@\n+x\n";
  for (std::uint32_t line : {3u, 4u, 10u})
    EXPECT_TRUE(passes(diff, "/root/a.cpp", line)) << line;
  for (std::uint32_t line : {1u, 2u, 5u, 9u, 11u})
    EXPECT_FALSE(passes(diff, "/root/a.cpp", line)) << line;
  EXPECT_TRUE(passes(diff, "/root/b.cpp", 1));
  EXPECT_FALSE(passes(diff, "/root/c.cpp", 1));
}

TEST(Diff, TakesTheLinesAroundAGap) {
  constexpr std::string_view diff = "--- a/a.cpp\n+++ b/a.cpp\n@@ -4,2 +3,0 @@\n-x\n-y\n";
  EXPECT_TRUE(passes(diff, "/root/a.cpp", 3));
  EXPECT_TRUE(passes(diff, "/root/a.cpp", 4));
  EXPECT_FALSE(passes(diff, "/root/a.cpp", 5));
}

TEST(Diff, TakesNoContentForAHeader) {
  constexpr std::string_view diff = "--- a/a.cpp\n+++ b/a.cpp\n@@ -1,2 +1,2 @@\n--- x\n-@@ -1 +99 @@\n"
                                    "+++ b/other.cpp\n+@@ -1 +99 @@\n@@ -7 +7 @@\n-x\n+y\n";
  EXPECT_TRUE(passes(diff, "/root/a.cpp", 7));
  EXPECT_FALSE(passes(diff, "/root/a.cpp", 99));
  EXPECT_FALSE(passes(diff, "/root/other.cpp", 7));
}

TEST(Diff, CountsAContextLineOnceOnEachSide) {
  constexpr std::string_view diff = "--- a/a.cpp\n+++ b/a.cpp\n@@ -1,4 +1,4 @@\n-x\n+y\n z\n\n-x\n+y\n"
                                    "--- a/b.cpp\n+++ b/b.cpp\n@@ -7 +7 @@\n-x\n+y\n";
  EXPECT_TRUE(passes(diff, "/root/a.cpp", 4));
  EXPECT_FALSE(passes(diff, "/root/a.cpp", 7));
  EXPECT_TRUE(passes(diff, "/root/b.cpp", 7));
}

TEST(Diff, ReadsQuotedPathsAndDeletions) {
  constexpr std::string_view quoted =
      "--- \"a/t\\tq\\\"\\303\\274.cpp\"\n+++ \"b/t\\tq\\\"\\303\\274.cpp\"\n@@ -1 +1 @@\n-x\n+y\n";
  EXPECT_TRUE(passes(quoted, "/root/t\tq\"\xC3\xBC.cpp", 1));
  EXPECT_TRUE(passes("--- a/a b.cpp\t\n+++ b/a b.cpp\t\n@@ -1 +1 @@\n-x\n+y\n", "/root/a b.cpp", 1));
  EXPECT_FALSE(passes("--- a/a.cpp\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "/root/a.cpp", 1));
}

TEST(Progress, GuessesWhatIsLeft) {
  EXPECT_EQ(timeLeft(1, 5, 10), "");
  EXPECT_EQ(timeLeft(10, 1, 10), "");
  EXPECT_EQ(timeLeft(10, 10, 10), "");
  EXPECT_EQ(timeLeft(10, 5, 10), "about 10 s left: ");
  EXPECT_EQ(timeLeft(60, 10, 40), "about 3 min left: ");
  EXPECT_EQ(timeLeft(3600, 10, 40), "about 3 h 0 min left: ");
}

TEST(Progress, StaysInOneLine) {
  EXPECT_EQ(cutToColumns("reading [1/2] a.cpp", 0), "reading [1/2] a.cpp");
  EXPECT_EQ(cutToColumns("reading [1/2] a.cpp", 20), "reading [1/2] a.cpp");
  EXPECT_EQ(cutToColumns("reading [1/2] a.cpp", 19), "reading [1/2] a...");
  EXPECT_EQ(cutToColumns("reading [1/2] a.cpp", 3), "..");
  EXPECT_EQ(cutToColumns("reading [1/2] a.cpp", 1), "");
  // Two columns each.
  EXPECT_EQ(cutToColumns("\xE6\xB5\x8B\xE8\xAF\x95\xE6\x96\x87\xE4\xBB\xB6", 9),
            "\xE6\xB5\x8B\xE8\xAF\x95\xE6\x96\x87\xE4\xBB\xB6");
  EXPECT_EQ(cutToColumns("\xE6\xB5\x8B\xE8\xAF\x95\xE6\x96\x87\xE4\xBB\xB6", 8),
            "\xE6\xB5\x8B\xE8\xAF\x95...");
}

Diagnostic finding(const std::string &file, const std::string &function, const std::string &fingerprint) {
  Diagnostic diagnostic = at(file, 1);
  diagnostic.check = "device-mixed-op";
  diagnostic.function = function;
  diagnostic.message = "same words";
  diagnostic.fingerprint = fingerprint;
  return diagnostic;
}

TEST(Baseline, MatchesEachEntryOnce) {
  ReportRun run;
  run.sourceRoot = "/root";
  const auto everywhere = [](const BaselineEntry &) { return true; };
  std::vector<Diagnostic> old = {finding("/root/a.cpp", "f", "1:1"), finding("/root/a.cpp", "f", "1:2"),
                                 finding("/root/a.cpp", "g", "2:1")};
  Baseline baseline;
  std::string error;
  ASSERT_TRUE(baseline.read(Baseline().updated(old, run, everywhere), error)) << error;
  // One of the equal two is gone, g moved to another file, and h says the same elsewhere.
  std::vector<Diagnostic> now = {finding("/root/a.cpp", "f", "1:1"), finding("/root/b.cpp", "g", "3:1"),
                                 finding("/root/c.cpp", "h", "4:1")};
  const BaselineSummary summary = baseline.compare(now, run, everywhere);
  EXPECT_EQ(summary.added, 1u);
  EXPECT_EQ(summary.unchanged, 2u);
  EXPECT_EQ(summary.fixed, 1u);
  EXPECT_FALSE(now[0].isActive());
  EXPECT_FALSE(now[1].isActive());
  EXPECT_TRUE(now[2].isActive());
}

TEST(Baseline, PrefersWhatIsNotSuppressed) {
  ReportRun run;
  run.sourceRoot = "/root";
  const auto everywhere = [](const BaselineEntry &) { return true; };
  const std::vector<Diagnostic> old = {finding("/root/a.cpp", "f", "1:1"),
                                       finding("/root/a.cpp", "g", "2:1")};
  Baseline baseline;
  std::string error;
  ASSERT_TRUE(baseline.read(Baseline().updated(old, run, everywhere), error)) << error;
  // A suppressed line has come before an equal one; another that was known is suppressed now.
  std::vector<Diagnostic> now = {finding("/root/a.cpp", "f", "1:1"), finding("/root/a.cpp", "f", "1:2"),
                                 finding("/root/a.cpp", "g", "2:1")};
  now[0].isSuppressed = now[2].isSuppressed = true;
  const BaselineSummary summary = baseline.compare(now, run, everywhere);
  EXPECT_EQ(summary.added, 0u);
  EXPECT_EQ(summary.unchanged, 1u);
  EXPECT_EQ(summary.suppressed, 1u);
  EXPECT_EQ(summary.fixed, 0u);
  EXPECT_EQ(now[1].baseline, BaselineState::Unchanged);
}

TEST(Baseline, OneOfBeforeStandsForAllCauses) {
  ReportRun run;
  run.sourceRoot = "/root";
  const auto everywhere = [](const BaselineEntry &) { return true; };
  Baseline baseline;
  std::string error;
  ASSERT_TRUE(
      baseline.read(Baseline().updated({finding("/root/net.cpp", "f", "1:1")}, run, everywhere), error));
  std::vector<Diagnostic> now = {finding("/root/net.cpp", "f", "2:1"), finding("/root/net.cpp", "f", "3:1")};
  for (Diagnostic &each : now) {
    each.cause = {Name("/root/train.cpp"), 1, 1, 1, 1};
    each.formerFingerprint = "1";
  }
  EXPECT_EQ(baseline.compare(now, run, everywhere).unchanged, 2u);
  // Once it is written anew, each is known for itself.
  Baseline migrated;
  ASSERT_TRUE(migrated.read(Baseline().updated({now[0]}, run, everywhere), error)) << error;
  now[1].cause.file = Name("/root/eval.cpp");
  const BaselineSummary summary = migrated.compare(now, run, everywhere);
  EXPECT_EQ(summary.unchanged, 1u);
  EXPECT_EQ(summary.added, 1u);
}

TEST(Baseline, RefusesWhatIsNone) {
  for (const char *text : {"", "[]", "{}", "null", "{\"findings\": 1}", "{\"findings\": [1]}",
                           "{\"runs\": [{\"results\": [{}]}]}", "{\"findings\": [{\"fingerprint\": 1}]}"}) {
    std::string error;
    EXPECT_FALSE(Baseline().read(text, error)) << text;
    EXPECT_NE(error, "") << text;
  }
}

TEST(Baseline, ReadsStrangePaths) {
  std::string error;
  EXPECT_TRUE(Baseline().read(
      R"({"runs": [{"results": [{"ruleId": "x", "partialFingerprints": {"deviceTidy/v1": "1:1"},
    "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a%2"}}}]}]}]})",
      error))
      << error;
}

} // namespace
