#include "records/Findings.h"
#include "base/RunError.h"

#include <gtest/gtest.h>

#include <fstream>

#include <unistd.h>

namespace {

using namespace devicerun;

Finding findingAt(const std::string &rule, const std::string &file, int line) {
  Finding finding;
  finding.rule = rule;
  finding.place = {file, line, line};
  return finding;
}

ErrorRecord errorAt(const std::vector<std::string> &stack) {
  ErrorRecord error;
  error.text = "Expected all tensors\nmore";
  error.stack = stack;
  ErrorArgument gpu, host;
  gpu.device = "cuda:0";
  host.device = "cpu";
  host.made = {"created", "aten::randn", {"/p/a.cpp:3 main"}};
  error.arguments = {gpu, host};
  return error;
}

std::vector<Verdict> judge(std::vector<Finding> &findings, const std::vector<ErrorRecord> &errors,
                           const std::vector<std::string> &reached, RunRecords run = {}) {
  FrameResolver resolver;
  run.errors = errors;
  for (const std::string &frame : reached)
    run.reached.push_back({{}, frame});
  judgeFindings(findings, run, resolver);
  std::vector<Verdict> verdicts;
  verdicts.reserve(findings.size());
  for (const Finding &finding : findings)
    verdicts.push_back(finding.verdict);
  return verdicts;
}

using Verdicts = std::vector<Verdict>;

TEST(Findings, InnermostPlaceIsConfirmed) {
  std::vector<Finding> findings = {findingAt("device-mixed-op", "/p/a.cpp", 10),
                                   findingAt("device-mixed-op", "/p/a.cpp", 20),
                                   findingAt("device-mixed-op", "/p/b.cpp", 10)};
  EXPECT_EQ(judge(findings, {errorAt({"/p/a.cpp:10 inner", "/p/a.cpp:20 main"})},
                  {"/p/a.cpp:10 inner", "/p/a.cpp:20 main"}),
            (Verdicts{Verdict::Confirmed, Verdict::NotReached, Verdict::NotReached}));
  EXPECT_EQ(findings[0].evidence, "Expected all tensors");
  EXPECT_EQ(findings[1].note, "an error in its line came first: Expected all tensors (at /p/a.cpp:10)");
}

TEST(Findings, LineThatEndsInAnArgumentIsNotReached) {
  const auto judged = [](const std::vector<std::string> &reached) {
    std::vector<Finding> findings = {findingAt("device-mixed-op", "/p/a.cpp", 10),
                                     findingAt("device-mixed-op", "/p/a.cpp", 20)};
    return judge(findings, {errorAt({"/p/a.cpp:10 inner", "/p/a.cpp:20:9 main"})}, reached)[1];
  };
  EXPECT_EQ(judged({"/p/a.cpp:10 inner", "/p/a.cpp:20:9 main"}), Verdict::NotReached);
  // Another argument came before; the operation itself would have come after.
  EXPECT_EQ(judged({"/p/a.cpp:20:7 main", "/p/a.cpp:20:9 main"}), Verdict::NotReached);
  EXPECT_EQ(judged({"/p/a.cpp:20:9 main", "/p/a.cpp:20:3 main"}), Verdict::Reached);
}

TEST(Findings, AnyExceptionMayEndALine) {
  std::vector<Finding> findings = {findingAt("device-mixed-op", "/p/a.cpp", 20)};
  RunRecords run;
  run.uncaught = {{{}, "no such file", 0, {"/p/a.cpp:5 load", "/p/a.cpp:20 main"}}};
  EXPECT_EQ(judge(findings, {}, {"/p/a.cpp:20 main"}, run), Verdicts{Verdict::NotReached});
  run.uncaught[0].source = {1, 7}; // the other rank came through
  EXPECT_EQ(judge(findings, {}, {"/p/a.cpp:20 main"}, run), Verdicts{Verdict::Reached});
}

TEST(Findings, HostAccessesNeedIsolation) {
  std::vector<Finding> findings = {findingAt("device-host-access", "/p/a.cpp", 20)};
  EXPECT_EQ(judge(findings, {}, {"/p/a.cpp:20 main"}), Verdicts{Verdict::NotJudged});
  EXPECT_NE(describeFindings(findings).find("add --isolate"), std::string::npos);
  RunRecords run;
  run.isIsolated = true;
  findings = {findingAt("device-host-access", "/p/a.cpp", 20)};
  EXPECT_EQ(judge(findings, {}, {"/p/a.cpp:20 main"}, run), Verdicts{Verdict::Reached});
}

TEST(Findings, OtherProgramsAreCounted) {
  std::vector<Finding> findings = {findingAt("device-mixed-op", "/p/a.cpp", 20),
                                   findingAt("device-mixed-op", "/p/other.cpp", 20)};
  RunRecords run;
  run.sources = {"src/../a.cpp", "a.cpp", "/usr/include/c++/12/vector"};
  EXPECT_EQ(judge(findings, {}, {}, run), (Verdicts{Verdict::NotReached, Verdict::OtherProgram}));
  const std::string text = describeFindings(findings);
  EXPECT_EQ(text.find("other.cpp"), std::string::npos);
  EXPECT_NE(
      text.find("2 findings: 0 confirmed, 0 reached without error, 1 not reached, 1 of other programs\n"),
      std::string::npos)
      << text;
  findings.pop_back();
  EXPECT_NE(describeFindings(findings).find("  1 finding: "), std::string::npos);
}

TEST(Findings, CallerIsConfirmedWhenNothingInsideWasFound) {
  std::vector<Finding> findings = {findingAt("device-mixed-op", "/p/a.cpp", 20)};
  EXPECT_EQ(judge(findings, {errorAt({"/p/a.cpp:10 inner", "/p/a.cpp:20 main"})}, {}),
            Verdicts{Verdict::Confirmed});
}

TEST(Findings, OriginsConfirmOnlyChecksAboutOrigins) {
  std::vector<Finding> findings = {findingAt("device-discarded-move", "/p/a.cpp", 5),
                                   findingAt("device-mixed-op", "/p/a.cpp", 3),
                                   findingAt("device-unregistered-tensor", "/p/a.cpp", 3)};
  findings[0].related = {{"/p/a.cpp", 2, 4}};
  EXPECT_EQ(judge(findings, {errorAt({"/p/a.cpp:30 main"})}, {"/p/a.cpp:3 main"}),
            (Verdicts{Verdict::Confirmed, Verdict::Reached, Verdict::Confirmed}));
}

TEST(Findings, DiscardedMovesAreFoundByTheirCopies) {
  std::vector<Finding> findings = {findingAt("device-discarded-move", "/p/a.cpp", 5),
                                   findingAt("device-discarded-move", "/p/a.cpp", 6),
                                   findingAt("device-mixed-op", "/p/a.cpp", 5)};
  ErrorRecord error = errorAt({"/p/a.cpp:30 main"});
  error.arguments[0].made.copied = {{"/p/a.cpp:6 main"}}; // of the argument that is where it should be
  error.arguments[1].made.copied = {{"/p/b.cpp:1 f"}, {"/usr/include/torch/x.h:1 to", "/p/a.cpp:5 main"}};
  EXPECT_EQ(judge(findings, {error}, {"/p/a.cpp:5 main", "/p/a.cpp:6 main"}),
            (Verdicts{Verdict::Confirmed, Verdict::Reached, Verdict::Reached}));
}

TEST(Findings, Places) {
  Region region{"src/a.cpp", 4, 6};
  EXPECT_TRUE(region.holds({"/home/me/src/a.cpp", 4, ""}));
  EXPECT_TRUE(region.holds({"src/a.cpp", 6, ""}));
  EXPECT_FALSE(region.holds({"/home/me/src/a.cpp", 7, ""}));
  EXPECT_FALSE(region.holds({"/home/me/othersrc/a.cpp", 5, ""}));
  Region absolute{"/p/a.cpp", 4, 4};
  EXPECT_TRUE(absolute.holds({"/p/x/../a.cpp", 4, ""}));
  EXPECT_FALSE(absolute.holds({"/q/a.cpp", 4, ""}));
}

class Sarif : public testing::Test {
protected:
  void TearDown() override { std::remove(path.c_str()); }
  FindingsReport read(const std::string &text) {
    std::ofstream(path) << text;
    return FindingsReport(path);
  }
  std::string path = testing::TempDir() + "/findings-" + std::to_string(getpid()) + ".sarif";
};

TEST_F(Sarif, ReadsUrisOfAllKinds) {
  FindingsReport report = read(R"({"version": "2.1.0", "runs": [
    {"originalUriBaseIds": {"ROOT": {"uri": "file:///p/"}, "SRC": {"uri": "src/", "uriBaseId": "ROOT"}},
     "results": [
      {"ruleId": "r", "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a%20b.cpp", "uriBaseId": "SRC"},
        "region": {"startLine": 3, "endLine": 5}}}]},
      {"rule": {"id": "s"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "file://host/x.cpp"},
        "region": {"startLine": 1}}}]},
      {"ruleId": "cycle", "locations": [{"physicalLocation": {"artifactLocation": {"uri": "c.cpp", "uriBaseId": "NONE"},
        "region": {"startLine": 2}}}]},
      {"ruleId": "nowhere", "locations": []},
      {"ruleId": "odd", "locations": [7]}]},
    {"results": null}]})");
  ASSERT_EQ(report.findings().size(), 3U);
  EXPECT_EQ(report.findings()[0].place.file, "/p/src/a b.cpp");
  EXPECT_EQ(report.findings()[0].place.lastLine, 5);
  EXPECT_EQ(report.findings()[1].rule, "s");
  EXPECT_EQ(report.findings()[1].place.file, "/x.cpp");
  EXPECT_EQ(report.findings()[2].place.file, "c.cpp");
}

TEST_F(Sarif, RefusesOtherFiles) {
  for (const char *text : {"", "{", "7", "{}", R"({"version": "2.1.0"})", R"({"version": 2, "runs": []})"})
    EXPECT_THROW(read(text), RunError) << text;
}

} // namespace
