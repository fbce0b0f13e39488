#include "analyzer/report/diagnostic/Describe.h"
#include "analyzer/report/diagnostic/Templates.h"
#include "analyzer/report/formats/TextReport.h"
#include "analyzer/report/source/Source.h"

#include "gtest/gtest.h"

#include <cstdio>
#include <fstream>

using namespace devicetidy;

namespace {

const CheckInfo Mixed = {"device-mixed-op",
                         "",
                         Level::Definite,
                         "'{operation}' {gets} {first} on {firstDevice} and {second} on {secondDevice}",
                         "move it first: {fix}",
                         {{"declared", "'{member}' is declared here"}},
                         {},
                         ""};

Location at(std::uint32_t line, std::uint32_t column = 1) {
  return {"/p/a.cpp", line, column, line, column + 1};
}

Finding mixed(const std::string &firstDevice, const std::string &secondDevice) {
  Finding finding;
  finding.check = "device-mixed-op";
  finding.where = at(9);
  finding.operation = "add";
  finding.operands.resize(2);
  finding.operands[0].text = "x";
  finding.operands[0].isCode = finding.operands[1].isCode = true;
  finding.operands[0].device = firstDevice;
  finding.operands[1].text = "y";
  finding.operands[1].device = secondDevice;
  return finding;
}

Diagnostic described(const Finding &finding) {
  SourceCache sources;
  return describe(finding, Mixed, sources);
}

std::string messageOf(const Finding &finding) { return described(finding).message; }

TEST(Describe, NamesTensorsDevicesAndOperation) {
  EXPECT_EQ(messageOf(mixed("cuda:0", "cpu")), "'add' gets 'x' on cuda:0 and 'y' on cpu");
}

TEST(Describe, QuotesDevicesThatOnlyTheProgramKnows) {
  EXPECT_EQ(messageOf(mixed("devices.back()", "cuda:1")),
            "'add' gets 'x' on 'devices.back()' and 'y' on cuda:1");
}

TEST(Describe, LeavesOutCasts) {
  EXPECT_EQ(messageOf(mixed("cuda:static_cast<c10::DeviceIndex>(rank)", "cuda:1")),
            "'add' gets 'x' on 'cuda:rank' and 'y' on cuda:1");
}

TEST(Describe, RepeatsTheArgumentsOfTheCall) {
  const std::string path = testing::TempDir() + "device-tidy-arguments.cpp";
  std::ofstream(path) << "\n  x.to(device, true);\n";
  Finding finding = mixed("cuda", "cpu");
  finding.where = {path, 2, 5, 2, 21};
  finding.fields = {{"tensor", "x"}, {"method", "to"}};
  finding.site.isAssignable = true;
  EXPECT_EQ(described(finding).notes.back().text, "move it first: x = x.to(device, true)");
  finding.site.isPointee = true;
  EXPECT_EQ(described(finding).notes.back().text, "move it first: *x = x->to(device, true)");
  finding.site.isPointee = finding.site.isAssignable = false;
  EXPECT_EQ(described(finding).notes.back().text, "move it first: auto moved = x.to(device, true)");
  finding.where.column = 3; // not the call, as where a macro makes it
  EXPECT_EQ(described(finding).notes.back().text, "move it first: auto moved = x.to(...)");
  finding.where = {path, 2, 5, 3, 21};
  EXPECT_EQ(described(finding).notes.back().text, "move it first: auto moved = x.to(...)");
  std::remove(path.c_str());
}

TEST(Describe, ExplainsCudaBesideAnIndex) {
  EXPECT_EQ(messageOf(mixed("cuda", "cuda:1")),
            "'add' gets 'x' on cuda (the current device) and 'y' on cuda:1");
  EXPECT_EQ(messageOf(mixed("cuda", "cpu")), "'add' gets 'x' on cuda and 'y' on cpu");
}

TEST(Describe, IsOnlyAsSureAsTheFinding) {
  Finding finding = mixed("device", "cpu");
  finding.level = Level::Likely;
  EXPECT_EQ(messageOf(finding), "'add' can get 'x' on 'device' and 'y' on cpu");
}

TEST(Describe, TellsTheStoryInOrder) {
  Finding finding = mixed("cuda", "cpu");
  finding.operands[0].history = {{StepKind::Created, at(1), "x", "cpu"},
                                 {StepKind::Moved, at(2), "x", "cuda"}};
  finding.operands[1].history = {{StepKind::Created, at(3), "y", "cpu"}};
  finding.fields = {{"member", "m"}};
  finding.related = {{"declared", at(4)}};
  finding.callers = {{at(5), "train"}};
  finding.fix = "y.to(x.device())";
  finding.fixAt = at(6);
  std::vector<std::string> told;
  for (const Note &note : described(finding).notes)
    told.push_back(std::to_string(note.where.line) + " " + note.text);
  EXPECT_EQ(told, (std::vector<std::string>{"1 'x' is created on cpu here", "2 'x' is moved to cuda here",
                                            "3 'y' is created on cpu here", "4 'm' is declared here",
                                            "5 reached from this call of 'train'",
                                            "6 move it first: y.to(x.device())"}));
}

TEST(Describe, SaysASharedStepOnce) {
  Finding finding = mixed("cuda", "cpu");
  const Step step = {StepKind::ModuleMoved, at(1), "net", "cuda"};
  finding.operands[0].history = finding.operands[1].history = {step};
  EXPECT_EQ(described(finding).notes.size(), 2u); // and the advice
}

std::string adviceOn(const Finding &finding) {
  const Note advice = described(finding).notes.back();
  return std::to_string(advice.where.line) + " " + advice.text;
}

TEST(Describe, AdvisesInWordsWithoutAnExpression) {
  Finding finding = mixed("cuda", "cpu");
  EXPECT_EQ(adviceOn(finding), "9 move 'y' to cuda before this");
  finding.operands[0].device = "a device chosen at run time";
  EXPECT_EQ(adviceOn(finding), "9 move 'y' to the device of 'x' before this");
}

TEST(Describe, AdvisesWhereTheTensorIsMade) {
  Finding finding = mixed("cuda", "cpu");
  finding.operands[1].history = {{StepKind::Created, at(3), "y", "cpu"}};
  EXPECT_EQ(adviceOn(finding), "3 create it on cuda, or move it to cuda before it is used");
  finding.operands[1].history = {{StepKind::Loaded, at(4), "y", "cpu"}};
  EXPECT_EQ(adviceOn(finding), "4 load it on cuda, or move it to cuda before it is used");
}

TEST(Describe, AdvisesToMoveTheOutermostModule) {
  Finding finding = mixed("cuda", "cpu");
  finding.operands[1] = {"the parameters of 'fc'", {}, "cpu", {}, false, "fc"};
  EXPECT_EQ(adviceOn(finding), "9 move 'fc' to cuda before this");
  finding.callers = {{at(5), "NetImpl::forward", "net", true}, {at(6), "Agent::act", "", false}};
  EXPECT_EQ(adviceOn(finding), "5 move 'net' to cuda before this");
}

TEST(Template, KeepsWhatItDoesNotKnow) { EXPECT_EQ(fillTemplate("a {b} {c} {", {{"b", "1"}}), "a 1 {c} {"); }

TEST(Findings, MergesWhatIsSaidTwiceAndKeepsTheSurest) {
  std::vector<Finding> findings = {mixed("cuda", "cpu"), mixed("cuda", "cpu"), mixed("cuda:1", "cpu")};
  findings[0].level = Level::Likely;
  findings[2].where = at(3);
  sortAndMerge(findings);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].where.line, 3u);
  EXPECT_EQ(findings[1].level, Level::Definite);
}

TEST(Findings, MergesWhatProgramsDoWithOtherDevices) {
  std::vector<Finding> findings = {mixed("cuda:1", "cpu"), mixed("cuda", "cpu")};
  std::vector<Finding> reversed = {findings[1], findings[0]};
  sortAndMerge(findings);
  sortAndMerge(reversed);
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_EQ(reversed.size(), 1u);
  EXPECT_EQ(findings[0].operands[0].device, reversed[0].operands[0].device);
}

TEST(Snippet, MarksCaretAndRanges) {
  const Snippet drawn = drawSnippet("x + y;", 3, {{1, 2}, {5, 6}});
  EXPECT_EQ(drawn.source, "x + y;");
  EXPECT_EQ(drawn.marks, "~ ^ ~");
}

TEST(Snippet, ExpandsTabs) {
  const Snippet drawn = drawSnippet("\ta\tb", 4, {});
  EXPECT_EQ(drawn.source, "        a       b");
  EXPECT_EQ(drawn.marks, "                ^");
}

TEST(Snippet, CountsColumnsOfTheScreen) {
  EXPECT_EQ(drawSnippet("\xC3\xA9 x", 4, {}).marks, "  ^");      // two bytes, one column
  EXPECT_EQ(drawSnippet("\xE4\xB8\xAD x", 5, {}).marks, "   ^"); // three bytes, two columns
  EXPECT_EQ(drawSnippet("e\xCC\x81 x", 5, {}).marks, "  ^");     // a combining accent
}

TEST(Snippet, ReplacesBytesThatAreNoText) {
  const Snippet drawn = drawSnippet("\xFF\xE4 x\x1B", 4, {});
  EXPECT_EQ(drawn.source, "\xEF\xBF\xBD\xEF\xBF\xBD x\xEF\xBF\xBD");
  EXPECT_EQ(drawn.marks, "   ^");
}

TEST(Snippet, CutsLongLines) {
  const std::string line = std::string(5000, 'a') + "X" + std::string(5000, 'b');
  const Snippet drawn = drawSnippet(line, 5001, {});
  EXPECT_LT(drawn.source.size(), 200u);
  EXPECT_EQ(drawn.source[drawn.marks.find('^')], 'X');
}

TEST(Snippet, PointsBehindTheEnd) { EXPECT_EQ(drawSnippet("ab", 9, {}).marks, "  ^"); }

TEST(TextReport, HasTheFormOfClang) {
  Diagnostic diagnostic;
  diagnostic.check = "device-mixed-op";
  diagnostic.where = {"/no/such/file.cpp", 3, 7, 3, 8};
  diagnostic.message = "message";
  diagnostic.notes = {{{"/no/such/file.cpp", 1, 2, 1, 3}, "note text"}};
  SourceCache sources;
  std::string text;
  writeTextReport({diagnostic}, sources, false, text);
  EXPECT_EQ(text, "/no/such/file.cpp:3:7: warning: message [device-mixed-op]\n"
                  "/no/such/file.cpp:1:2: note: note text\n");
  diagnostic.severity = Severity::Error;
  text.clear();
  writeTextReport({diagnostic}, sources, true, text);
  EXPECT_NE(text.find("\033[1;31merror: "), std::string::npos);
}

} // namespace
