#include "analyzer/report/diagnostic/Fingerprint.h"
#include "analyzer/report/formats/ReportRun.h"
#include "analyzer/report/source/Text.h"

#include "gtest/gtest.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>

using namespace devicetidy;

namespace {

const CheckInfo Mixed = {
    "device-mixed-op", "summary", Level::Definite, "", "", {}, {}, "# title\n\nFirst\nlines.\n\nRest."};

/// A file that lives as long as the test.
class SourceFile {
public:
  explicit SourceFile(const std::string &text, const std::string &name = "device-tidy-report.cpp")
      : path(testing::TempDir() + name) {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~SourceFile() { std::remove(path.c_str()); }
  const std::string path;
};

Diagnostic at(const std::string &file, std::uint32_t line, std::uint32_t column, std::uint32_t endColumn) {
  Diagnostic diagnostic;
  diagnostic.check = "device-mixed-op";
  diagnostic.where = {file, line, column, line, endColumn};
  diagnostic.message = "message";
  return diagnostic;
}

ReportRun runIn(const std::string &root) {
  ReportRun run;
  run.version = "1.2.3";
  run.sourceRoot = root;
  run.checks = {&Mixed};
  return run;
}

nlohmann::json sarif(const std::vector<Diagnostic> &diagnostics, const ReportRun &run) {
  SourceCache sources;
  return nlohmann::json::parse(sarifReport(diagnostics, run, sources))["runs"][0];
}

std::vector<std::string> prints(const std::string &text, const std::vector<std::uint32_t> &lines,
                                const std::string &function = "f") {
  const SourceFile file(text);
  std::vector<Diagnostic> diagnostics;
  for (std::uint32_t line : lines) {
    diagnostics.push_back(at(file.path, line, 1, 2));
    diagnostics.back().function = function;
  }
  SourceCache sources;
  addFingerprints(diagnostics, testing::TempDir().substr(0, testing::TempDir().size() - 1), sources);
  std::vector<std::string> result;
  for (const Diagnostic &diagnostic : diagnostics)
    result.push_back(diagnostic.fingerprint);
  return result;
}

TEST(Columns, CountUtf16Units) {
  EXPECT_EQ(utf16Column("abc", 1), 1u);
  EXPECT_EQ(utf16Column("abc", 4), 4u);
  EXPECT_EQ(utf16Column("\xE4\xB8\xAD x", 5), 3u);    // three bytes, one unit
  EXPECT_EQ(utf16Column("\xF0\x9F\x98\x80x", 5), 3u); // four bytes, a surrogate pair
  EXPECT_EQ(utf16Column("\xF0\x9F\x98\x80\xC3\xA9x", 7), 4u);
  EXPECT_EQ(utf16Column("\tx", 2), 2u);       // a tab is one unit
  EXPECT_EQ(utf16Column("\xFF\xE4x", 3), 3u); // no UTF-8: a unit for each byte
}

TEST(Columns, GoOnBehindTheEndOfTheLine) {
  EXPECT_EQ(utf16Column("ab", 5), 5u);
  EXPECT_EQ(utf16Column("", 1), 1u);
}

TEST(CutText, NeverCutsACharacter) {
  EXPECT_EQ(cutText("abcdef", 6), "abcdef");
  EXPECT_EQ(cutText("abcdefg", 6), "abc...");
  EXPECT_EQ(cutText("\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD", 8), "\xE4\xB8\xAD...");
}

TEST(Paths, AreRelativeOnlyBelowTheRoot) {
  EXPECT_EQ(relativePath("/p/src/a.cpp", "/p"), "src/a.cpp");
  EXPECT_EQ(relativePath("/project/a.cpp", "/p"), "/project/a.cpp");
  EXPECT_EQ(relativePath("/p/a.cpp", ""), "/p/a.cpp");
}

TEST(Fingerprint, IgnoresLinesAndSpaces) {
  const auto one = prints("x + y;\n", {1});
  EXPECT_EQ(one, prints("\n\n  x  +  y;\r\n", {3}));
  EXPECT_NE(one, prints("x + z;\n", {1}));
  EXPECT_NE(one, prints("x + y;\n", {1}, "g"));
}

TEST(Fingerprint, CountsEqualOnes) {
  const auto both = prints("x + y;\nx+y;\n", {1, 2});
  EXPECT_EQ(both[0].substr(0, 16), both[1].substr(0, 16));
  EXPECT_EQ(both[0].substr(16), ":1");
  EXPECT_EQ(both[1].substr(16), ":2");
}

TEST(Sarif, EscapesPathsAndBrackets) {
  Diagnostic diagnostic = at("/p/a b\xC3\xA9#[1].cpp", 1, 1, 2);
  diagnostic.message = "'x[0]' [is](1)";
  const auto result = sarif({diagnostic}, runIn("/p"))["results"][0];
  EXPECT_EQ(result["message"]["text"], "'x\\[0\\]' \\[is\\](1)");
  const auto artifact = result["locations"][0]["physicalLocation"]["artifactLocation"];
  EXPECT_EQ(artifact["uri"], "a%20b%C3%A9%23%5B1%5D.cpp");
  EXPECT_EQ(artifact["uriBaseId"], "SRCROOT");
}

TEST(Sarif, NamesFilesOutsideTheRootAbsolutely) {
  const auto result = sarif({at("/other/a.cpp", 1, 1, 2)}, runIn("/p"))["results"][0];
  const auto artifact = result["locations"][0]["physicalLocation"]["artifactLocation"];
  EXPECT_EQ(artifact["uri"], "file:///other/a.cpp");
  EXPECT_FALSE(artifact.contains("uriBaseId"));
}

TEST(Sarif, ConvertsColumns) {
  const SourceFile file("/* \xF0\x9F\x98\x80 */ x + y;\n");
  const auto region = sarif({at(file.path, 1, 12, 13)},
                            runIn("/p"))["results"][0]["locations"][0]["physicalLocation"]["region"];
  EXPECT_EQ(region["startColumn"], 10);
  EXPECT_EQ(region["endColumn"], 11);
}

TEST(Sarif, TellsLevelsApart) {
  std::vector<Diagnostic> diagnostics(4, at("/p/a.cpp", 1, 1, 2));
  diagnostics[1].level = Level::Likely;
  diagnostics[2].level = diagnostics[3].level = Level::Latent;
  diagnostics[3].severity = Severity::Error;
  const auto results = sarif(diagnostics, runIn("/p"))["results"];
  EXPECT_EQ(results[0]["level"], "error");
  EXPECT_EQ(results[1]["level"], "warning");
  EXPECT_EQ(results[2]["level"], "note");
  EXPECT_EQ(results[3]["level"], "error");
  EXPECT_EQ(results[1]["properties"]["certainty"], "likely");
}

TEST(Sarif, LeavesOutTheLeastSureBeyondTheLimit) {
  std::vector<Diagnostic> diagnostics(25003, at("/p/a.cpp", 1, 1, 2));
  diagnostics[0].level = diagnostics[1].level = diagnostics[2].level = Level::Latent;
  const auto run = sarif(diagnostics, runIn("/p"));
  EXPECT_EQ(run["results"].size(), 25000u);
  for (const auto &result : run["results"])
    ASSERT_EQ(result["level"], "error");
  const auto notice = run["invocations"][0]["toolExecutionNotifications"][0];
  EXPECT_EQ(notice["message"]["text"], "3 results beyond the first 25000 are left out");
}

TEST(Sarif, KeepsTheEndOfALongStory) {
  Diagnostic diagnostic = at("/p/a.cpp", 1, 1, 2);
  diagnostic.flows.emplace_back(1200, Note{diagnostic.where, "step"});
  diagnostic.flows[0].back().text = "end";
  const auto flow = sarif({diagnostic}, runIn("/p"))["results"][0]["codeFlows"][0]["threadFlows"][0];
  EXPECT_EQ(flow["locations"].size(), 1000u);
  EXPECT_EQ(flow["locations"][999]["location"]["message"]["text"], "end");
}

TEST(Sarif, SurvivesTextThatIsNoUtf8) {
  Diagnostic diagnostic = at("/p/a.cpp", 1, 1, 2);
  diagnostic.message = "bad \xFF byte";
  diagnostic.fix = Fix{"fix", {diagnostic.where, 0, 1, "\xFF"}};
  const auto result = sarif({diagnostic}, runIn("/p"))["results"][0];
  EXPECT_EQ(result["message"]["text"], "bad \xEF\xBF\xBD byte");
  EXPECT_FALSE(result.contains("fixes")); // it would write other bytes than it read
}

TEST(GitHub, EscapesPropertiesAndData) {
  Diagnostic diagnostic = at("/p/a:b,c%.cpp", 2, 3, 4);
  diagnostic.message = "50%: a, b";
  diagnostic.notes = {{diagnostic.where, "note"}};
  SourceCache sources;
  EXPECT_EQ(gitHubReport({diagnostic}, runIn("/p"), sources),
            "::error file=a%3Ab%2Cc%25.cpp,line=2,endLine=2,col=3,endColumn=4,title=device-mixed-op::"
            "50%25: a, b%0Aa:b,c%25.cpp:2: note\n");
}

TEST(GitHub, LeavesOutColumnsOverSeveralLines) {
  Diagnostic diagnostic = at("/p/a.cpp", 2, 3, 4);
  diagnostic.level = Level::Latent;
  diagnostic.where.endLine = 5;
  SourceCache sources;
  EXPECT_EQ(gitHubReport({diagnostic}, runIn("/p"), sources),
            "::notice file=a.cpp,line=2,endLine=5,title=device-mixed-op::message\n");
}

} // namespace
