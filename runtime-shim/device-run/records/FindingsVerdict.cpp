// What a run says about each finding.
#include "records/ErrorReport.h"
#include "records/Findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace devicerun {
namespace {

constexpr const char *kDiscardedMove = "device-discarded-move";

/// Checks whose findings stand where a tensor was left behind; the error comes later and elsewhere.
bool isAboutOrigin(const std::string &rule) {
  return rule == kDiscardedMove || rule == "device-unregistered-tensor";
}

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

} // namespace

bool Region::holds(const Frame &frame) const {
  return frame.line >= firstLine && frame.line <= lastLine && sameFile(file, frame.file);
}

void judgeFindings(std::vector<Finding> &findings, const std::vector<ErrorRecord> &errors,
                   const std::vector<std::string> &reached, FrameResolver &resolver) {
  for (const std::string &frame : reached)
    resolver.want(frame);
  for (const ErrorRecord &error : errors) {
    for (const std::string &frame : error.stack)
      resolver.want(frame);
    for (const ErrorArgument &argument : error.arguments) {
      for (const std::string &frame : argument.made.stack)
        resolver.want(frame);
      for (const std::vector<std::string> &place : argument.made.copied)
        for (const std::string &frame : place)
          resolver.want(frame);
    }
  }
  for (const ErrorRecord &error : errors) {
    std::vector<Frame> stack = resolver.places(error.stack);
    confirmByStack(findings, error, stack);
    std::string where = stack.empty() ? "" : fmt::format(" (at {})", displayPlace(stack.front()));
    confirmByCopies(findings, error, where, resolver);
    confirmByOrigin(findings, error, where, resolver);
  }
  for (const std::string &text : reached)
    for (const Frame &frame : resolver.places(text))
      for (Finding &finding : findings)
        if (finding.verdict == Verdict::NotReached && finding.place.holds(frame))
          finding.verdict = Verdict::Reached;
}

std::string describeFindings(const std::vector<Finding> &findings) {
  std::array<std::size_t, 3> counts{};
  std::string text;
  for (const Finding &finding : findings) {
    ++counts[static_cast<std::size_t>(finding.verdict)];
    const char *verdict = finding.verdict == Verdict::Confirmed ? "confirmed"
                          : finding.verdict == Verdict::Reached ? "reached without error"
                                                                : "not reached";
    text += fmt::format("  {:<21}  {}  {}\n", verdict,
                        displayPlace({finding.place.file, finding.place.firstLine, ""}), finding.rule);
    if (!finding.evidence.empty())
      text += fmt::format("  {:<21}    rank {}: {}\n", "", finding.rank, finding.evidence);
  }
  text += fmt::format("  {} findings: {} confirmed, {} reached without error, {} not reached\n",
                      findings.size(), counts[2], counts[1], counts[0]);
  return text;
}

} // namespace devicerun
