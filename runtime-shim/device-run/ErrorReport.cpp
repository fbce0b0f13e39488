#include "ErrorReport.h"

#include "Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>

#include <sys/wait.h>

namespace devicerun {
namespace {

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

/// What the error says: one line, except that an invalid ordinal has a second one with the devices there are.
std::string describeText(const ErrorRecord &error) {
  std::string text;
  for (const std::string &line : split(error.text, '\n')) {
    text += fmt::format("  {}\n", line);
    if (error.errorClass != "invalid-ordinal")
      break;
  }
  return text;
}

/// Where a gradient that the engine refused should be: "... invalid gradient at index 0 - expected device
/// cuda:0 but got cpu". Empty for other errors.
std::string deviceOfGradient(const ErrorRecord &error) {
  constexpr std::string_view before = "expected device ";
  std::size_t begin = error.text.find(before);
  if (begin == std::string::npos || error.text.find("invalid gradient") == std::string::npos)
    return "";
  begin += before.size();
  return error.text.substr(begin, error.text.find(' ', begin) - begin);
}

std::string sourceLine(const Frame &frame) {
  std::ifstream file(frame.file);
  std::string line;
  for (int number = 0; number < frame.line; ++number)
    if (!std::getline(file, line))
      return "";
  return std::string(trimmed(line));
}

/// "    file:line  source text", or nothing when the place is not known.
std::string snippet(const std::optional<Frame> &place) {
  if (!place)
    return "";
  std::string source = sourceLine(*place);
  return source.empty() ? "" : fmt::format("      {:>5} | {}\n", place->line, source);
}

std::optional<Frame> innermost(const std::vector<std::string> &stack, FrameResolver &resolver) {
  std::vector<Frame> places = resolver.places(stack);
  if (places.empty())
    return std::nullopt;
  return places.front();
}

std::string nameOf(const ErrorArgument &argument) {
  std::string name = argument.name.empty() ? fmt::format("argument {}", argument.index) : argument.name;
  return argument.element < 0 ? name : fmt::format("{}[{}]", name, argument.element);
}

std::string describeMade(const ErrorArgument &argument, const std::optional<Frame> &place) {
  if (argument.made.how.empty() && !place)
    return "";
  std::string text = argument.made.how.empty() ? "made" : argument.made.how;
  if (!argument.made.op.empty())
    text += " by " + argument.made.op;
  if (place)
    text += " at " + displayPlace(*place);
  return text;
}

std::string describeArguments(const ErrorRecord &error, FrameResolver &resolver) {
  std::string text;
  for (const ErrorArgument &argument : error.arguments) {
    std::optional<Frame> place = innermost(argument.made.stack, resolver);
    std::string line = fmt::format("    {:<12} on {:<7} {:<12} {}", nameOf(argument), argument.device,
                                   argument.shape, describeMade(argument, place));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n" + snippet(place);
  }
  return text;
}

std::string nodeName(const ErrorRecord &error) {
  // "torch::autograd::MulBackward0", and for custom functions "torch::autograd::CppNode<net::Square>".
  constexpr std::string_view custom = "CppNode<";
  std::string name = error.backwardNode;
  if (std::size_t begin = name.find(custom); begin != std::string::npos && name.back() == '>')
    return name.substr(begin + custom.size(), name.size() - begin - custom.size() - 1);
  return name.substr(name.rfind(':') + 1);
}

/// For errors that name no argument on another device.
std::string describeOtherFix(const ErrorRecord &error, const std::optional<Frame> &failing) {
  if (failing && error.text.find("resides on host memory") != std::string::npos)
    return fmt::format("  change {}: make the tensor without a device and move it with .to()\n",
                       displayPlace(*failing));
  std::string device = deviceOfGradient(error);
  if (device.empty())
    return "";
  if (!error.backwardNode.empty())
    return fmt::format("  change backward() of {}: return gradients on {}\n", nodeName(error), device);
  return fmt::format("  change {}: give backward() a gradient on {}\n",
                     failing ? displayPlace(*failing) : "the call of backward()", device);
}

std::string describeFix(const ErrorRecord &error, const std::optional<Frame> &failing,
                        FrameResolver &resolver) {
  std::optional<OddArgument> odd = findOddArgument(error);
  if (!odd)
    return describeOtherFix(error, failing);
  const ErrorArgument &argument = error.arguments[odd->index];
  std::optional<Frame> made = innermost(argument.made.stack, resolver);
  std::string move = fmt::format("move '{}' to {} ('.to({}.device())')", nameOf(argument), odd->expected,
                                 nameOf(error.arguments[odd->reference]));
  // Memory of the program is where it is.
  bool moves = argument.made.how == "moved" || argument.made.op == "torch::from_blob";
  std::string verb = moves ? "move it to" : "create it on";
  if (made && failing)
    return fmt::format("  change {}: {} {}; or {}: {}\n", displayPlace(*made), verb, odd->expected,
                       displayPlace(*failing), move);
  if (made || failing)
    return fmt::format("  change {}: {}\n", displayPlace(made ? *made : *failing),
                       made ? fmt::format("{} {}", verb, odd->expected) : move);
  return fmt::format("  {}\n", move);
}

/// Who called: other lines of the program, or, for the backward pass, the line whose gradient is computed.
std::string describeCallers(const std::vector<Frame> &stack, std::size_t first) {
  constexpr std::size_t mostCallers = 4;
  std::string text;
  for (std::size_t i = first; i < std::min(stack.size(), first + mostCallers); ++i)
    text += fmt::format("    called from {}\n", displayPlace(stack[i]));
  return text;
}

std::string describeBackward(const ErrorRecord &error, FrameResolver &resolver) {
  if (error.backwardNode.empty())
    return "";
  // AccumulateGrad belongs to a parameter, not to a call.
  std::string name = nodeName(error);
  if (name == "AccumulateGrad")
    return "    in the backward pass, adding to the gradient that a parameter has already\n";
  std::vector<Frame> forward = resolver.places(error.forwardStack);
  if (forward.empty())
    return fmt::format("    in the backward pass, in {}\n", name);
  return fmt::format("    in the backward pass, in {}: the gradient of the call at {}\n", name,
                     displayPlace(forward.front())) +
         snippet(forward.front()) + describeCallers(forward, 1);
}

/// Why no line of the program can be shown for the failing call, and what would help.
std::string describeMissingLine(const ErrorRecord &error, const FrameResolver &resolver) {
  if (resolver.missedTool())
    return "  install binutils (addr2line) or LLVM to see source lines\n";
  if (resolver.missedLines())
    return "  compile the program with -g to see source lines\n";
  if (error.backwardNode.empty())
    return "  no line of the program is on that stack: the backward pass runs in threads of its own\n";
  return "";
}

} // namespace

std::optional<OddArgument> findOddArgument(const ErrorRecord &error) {
  const std::vector<ErrorArgument> &arguments = error.arguments;
  std::map<std::string, int> uses;
  for (const ErrorArgument &argument : arguments)
    ++uses[argument.device];
  if (uses.size() < 2)
    return std::nullopt;
  // The device to be on: a GPU before the CPU, then the one most arguments are on, then the first.
  auto better = [&](const ErrorArgument &a, const ErrorArgument &b) {
    bool aCpu = a.device == "cpu", bCpu = b.device == "cpu";
    return aCpu != bCpu ? bCpu : uses[a.device] > uses[b.device];
  };
  std::size_t reference = 0;
  for (std::size_t i = 1; i < arguments.size(); ++i)
    if (better(arguments[i], arguments[reference]))
      reference = i;
  std::size_t odd = 0;
  while (arguments[odd].device == arguments[reference].device)
    ++odd;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].device != arguments[reference].device && arguments[i].device == "cpu") {
      odd = i;
      break;
    }
  return OddArgument{odd, arguments[reference].device, reference};
}

std::string otherEnd(const ErrorRecord &error, const std::vector<UncaughtException> &uncaught, int status) {
  for (const UncaughtException &exception : uncaught) {
    if (exception.source.rank != error.source.rank || exception.source.pid != error.source.pid)
      continue;
    // Whoever throws it again in another exception keeps its text.
    bool same = exception.text.find(firstLine(error.text)) != std::string::npos;
    return same ? "" : firstLine(exception.text);
  }
  bool fault = WIFSIGNALED(status) && WTERMSIG(status) != SIGABRT;
  return fault && error.errorClass != "host-access" ? describeSignal(WTERMSIG(status)) : "";
}

std::string explainError(const ErrorRecord &error, FrameResolver &resolver) {
  for (const std::vector<std::string> *frames : {&error.stack, &error.forwardStack})
    for (const std::string &frame : *frames)
      resolver.want(frame);
  for (const ErrorArgument &argument : error.arguments)
    for (const std::string &frame : argument.made.stack)
      resolver.want(frame);
  std::vector<Frame> stack = resolver.places(error.stack);
  std::optional<Frame> failing;
  if (!stack.empty())
    failing = stack.front();
  std::string text = describeText(error);
  std::string operation = error.op.empty() ? "a call" : error.op;
  text += failing ? fmt::format("  in {} at {}\n", operation, displayPlace(*failing))
                  : fmt::format("  in {}\n", operation);
  text += snippet(failing);
  text += describeCallers(stack, 1);
  text += describeBackward(error, resolver);
  text += describeArguments(error, resolver);
  text += describeFix(error, failing, resolver);
  if (!failing)
    text += describeMissingLine(error, resolver);
  return text;
}

} // namespace devicerun
