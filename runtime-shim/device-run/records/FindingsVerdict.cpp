// What a run says about each finding.
#include "records/ErrorReport.h"
#include "records/Findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

namespace devicerun {
namespace {

constexpr const char *kDiscardedMove = "device-discarded-move";
constexpr const char *kHostAccess = "device-host-access";

/// Checks whose findings stand where a tensor was left behind; the error comes later and elsewhere.
bool isAboutOrigin(const std::string &rule) {
  return rule == kDiscardedMove || rule == "device-unregistered-tensor";
}

void confirm(Finding &finding, const ErrorRecord &error, const std::string &where) {
  if (finding.verdict == Verdict::Confirmed)
    return; // the first error is the evidence
  finding.verdict = Verdict::Confirmed;
  finding.evidence = error.text.substr(0, error.text.find('\n')) + where;
  finding.rank = error.source.rank;
}

/// Confirms the findings at the innermost place of the stack that has any.
void confirmByStack(std::vector<Finding> &findings, const ErrorRecord &error,
                    const std::vector<Frame> &stack) {
  for (const Frame &frame : stack) {
    bool any = false;
    for (Finding &finding : findings)
      if (finding.place.holds(frame)) {
        confirm(finding, error, "");
        any = true;
      }
    if (any)
      return;
  }
}

/// Confirms discarded moves of the tensors that were on the wrong device: each was copied at such a place,
/// and the copy was not what the failing call got.
void confirmByCopies(std::vector<Finding> &findings, const ErrorRecord &error, const std::string &where,
                     FrameResolver &resolver) {
  std::optional<OddArgument> odd = findOddArgument(error);
  if (!odd)
    return;
  for (const ErrorArgument &argument : error.arguments) {
    if (argument.device == odd->expected)
      continue;
    for (const std::vector<std::string> &stack : argument.made.copied) {
      std::vector<Frame> places = resolver.places(stack);
      for (Finding &finding : findings)
        if (finding.rule == kDiscardedMove && !places.empty() && finding.place.holds(places.front()))
          confirm(finding, error, where);
    }
  }
}

/// Confirms findings about the tensor that was on the wrong device.
void confirmByOrigin(std::vector<Finding> &findings, const ErrorRecord &error, const std::string &where,
                     FrameResolver &resolver) {
  std::optional<OddArgument> odd = findOddArgument(error);
  if (!odd)
    return;
  std::vector<Frame> made = resolver.places(error.arguments[odd->index].made.stack);
  if (made.empty())
    return;
  const Frame &origin = made.front();
  for (Finding &finding : findings) {
    if (!isAboutOrigin(finding.rule))
      continue;
    bool related = std::any_of(finding.related.begin(), finding.related.end(),
                               [&](const Region &region) { return region.holds(origin); });
    if (related || finding.place.holds(origin))
      confirm(finding, error, where);
  }
}

/// An exception that went through lines of the program.
struct Thrown {
  const RecordSource &source;
  const std::string &text;
  const std::vector<std::string> &stack;
};

std::vector<Thrown> allThrown(const RunRecords &run) {
  std::vector<Thrown> thrown;
  for (const ErrorRecord &error : run.errors)
    thrown.push_back({error.source, error.text, error.stack});
  for (const UncaughtException &exception : run.uncaught)
    if (!exception.stack.empty())
      thrown.push_back({exception.source, exception.text, exception.stack});
  return thrown;
}

/// A process by rank and number.
using Process = std::pair<int, long>;
Process processOf(const RecordSource &source) { return {source.rank, source.pid}; }

/// By process, what it called on the lines of one finding, in the order of the first time.
using Calls = std::map<Process, std::vector<std::string>>;

/// Did a process get past the calls that an exception left? What a line computes last is called for the first
/// time after everything that it computes before.
bool gotPast(const Calls &calls, const std::map<Process, std::set<std::string>> &left) {
  return std::any_of(calls.begin(), calls.end(), [&](const auto &entry) {
    const auto &[process, frames] = entry;
    const auto failed = left.find(process);
    if (failed == left.end())
      return true;
    const auto isLeft = [&](const std::string &frame) { return failed->second.count(frame) > 0; };
    const auto first = std::find_if(frames.begin(), frames.end(), isLeft);
    return !std::all_of(first, frames.end(), isLeft);
  });
}

/// Reached, unless the lines were only entered, and left by an exception before the operation came.
void judgeReached(Finding &finding, const RunRecords &run, const std::vector<Thrown> &thrown,
                  FrameResolver &resolver) {
  const auto isThere = [&](const std::string &frame) {
    const std::vector<Frame> &places = resolver.places(frame);
    return std::any_of(places.begin(), places.end(),
                       [&](const Frame &place) { return finding.place.holds(place); });
  };
  Calls calls;
  for (const ReachedFrame &each : run.reached)
    if (isThere(each.frame))
      calls[processOf(each.source)].push_back(each.frame);
  if (calls.empty())
    return;
  std::map<Process, std::set<std::string>> left;
  const Thrown *first = nullptr;
  for (const Thrown &each : thrown)
    if (const auto frame = std::find_if(each.stack.begin(), each.stack.end(), isThere);
        frame != each.stack.end()) {
      left[processOf(each.source)].insert(*frame);
      first = first ? first : &each;
    }
  if (!first || gotPast(calls, left)) {
    finding.verdict = Verdict::Reached;
    return;
  }
  const std::vector<Frame> stack = resolver.places(first->stack);
  finding.note =
      fmt::format("an error in its line came first: {}{}", first->text.substr(0, first->text.find('\n')),
                  stack.empty() ? "" : fmt::format(" (at {})", displayPlace(stack.front())));
}

void wantAll(const RunRecords &run, FrameResolver &resolver) {
  const auto want = [&](const std::vector<std::string> &stack) {
    for (const std::string &frame : stack)
      resolver.want(frame);
  };
  for (const ReachedFrame &each : run.reached)
    resolver.want(each.frame);
  for (const UncaughtException &exception : run.uncaught)
    want(exception.stack);
  for (const ErrorRecord &error : run.errors) {
    want(error.stack);
    for (const ErrorArgument &argument : error.arguments) {
      want(argument.made.stack);
      for (const std::vector<std::string> &place : argument.made.copied)
        want(place);
    }
  }
}

/// Host code that runs no operator leaves a trace only where it faults.
void judgeHostAccess(Finding &finding, bool isIsolated) {
  if (!isIsolated) {
    finding.verdict = Verdict::NotJudged;
    finding.note = "add --isolate: without it host code can read the memory of virtual GPUs";
  } else if (finding.verdict == Verdict::NotReached && finding.note.empty()) {
    finding.note = "no fault, and no operator ran on its line";
  }
}

bool isIn(const std::vector<std::string> &sources, const Finding &finding) {
  return std::any_of(sources.begin(), sources.end(),
                     [&](const std::string &source) { return sameFile(finding.place.file, source); });
}

const char *wordsOf(Verdict verdict) {
  switch (verdict) {
  case Verdict::Confirmed:
    return "confirmed";
  case Verdict::Reached:
    return "reached without error";
  case Verdict::NotJudged:
    return "not judged";
  case Verdict::OtherProgram:
    return "of other programs";
  case Verdict::NotReached:
    break;
  }
  return "not reached";
}

} // namespace

bool sameFile(const std::string &ofFinding, const std::string &ofFrame) {
  namespace fs = std::filesystem;
  fs::path finding(ofFinding), frame = fs::path(ofFrame).lexically_normal();
  if (finding == frame)
    return true;
  if (finding.filename() != frame.filename())
    return false;
  std::error_code error;
  if (finding.is_absolute() && frame.is_absolute())
    return fs::equivalent(finding, frame, error) && !error; // a symbolic link on the way
  // One of them is relative to something unknown: the shorter must be the end of the other.
  std::string a = finding.string(), b = frame.string();
  if (a.size() > b.size())
    std::swap(a, b);
  return b.size() > a.size() && b.compare(b.size() - a.size(), a.size(), a) == 0 &&
         (b[b.size() - a.size() - 1] == '/' || a.front() == '/');
}

bool Region::holds(const Frame &frame) const {
  return std::max(frame.line, frame.lastLine) >= firstLine && frame.line <= lastLine &&
         sameFile(file, frame.file);
}

void judgeFindings(std::vector<Finding> &findings, const RunRecords &run, FrameResolver &resolver) {
  wantAll(run, resolver);
  for (const ErrorRecord &error : run.errors) {
    std::vector<Frame> stack = resolver.places(error.stack);
    confirmByStack(findings, error, stack);
    std::string where = stack.empty() ? "" : fmt::format(" (at {})", displayPlace(stack.front()));
    confirmByCopies(findings, error, where, resolver);
    confirmByOrigin(findings, error, where, resolver);
  }
  const std::vector<Thrown> thrown = allThrown(run);
  for (Finding &finding : findings) {
    if (finding.verdict == Verdict::Confirmed)
      continue;
    judgeReached(finding, run, thrown, resolver);
    if (finding.verdict == Verdict::NotReached && run.sources && !isIn(*run.sources, finding))
      finding.verdict = Verdict::OtherProgram;
    else if (finding.rule == kHostAccess)
      judgeHostAccess(finding, run.isIsolated);
  }
}

std::string describeFindings(const std::vector<Finding> &findings) {
  std::map<Verdict, std::size_t> counts;
  std::string text;
  for (const Finding &finding : findings) {
    ++counts[finding.verdict];
    if (finding.verdict == Verdict::OtherProgram)
      continue;
    text += fmt::format("  {:<21}  {}  {}\n", wordsOf(finding.verdict),
                        displayPlace({finding.place.file, finding.place.firstLine, ""}), finding.rule);
    if (!finding.evidence.empty())
      text += fmt::format("  {:<21}    rank {}: {}\n", "", finding.rank, finding.evidence);
    if (!finding.note.empty())
      text += fmt::format("  {:<21}    {}\n", "", finding.note);
  }
  text += fmt::format("  {} finding{}:", findings.size(), findings.size() == 1 ? "" : "s");
  std::string before = " ";
  for (Verdict verdict : {Verdict::Confirmed, Verdict::Reached, Verdict::NotReached, Verdict::NotJudged,
                          Verdict::OtherProgram}) {
    if (counts[verdict] == 0 && (verdict == Verdict::NotJudged || verdict == Verdict::OtherProgram))
      continue;
    text += fmt::format("{}{} {}", before, counts[verdict], wordsOf(verdict));
    before = ", ";
  }
  return text + "\n";
}

} // namespace devicerun
