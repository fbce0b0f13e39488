#include "records/ErrorReport.h"

#include "base/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

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

/// "    file:line  source text" for each of its lines, or nothing when the place is not known.
std::string snippet(const std::optional<Frame> &place, FrameResolver &resolver) {
  constexpr int most = 6;
  std::string text;
  if (place)
    for (int line = place->line;
         line <= std::min(std::max(place->line, place->lastLine), place->line + most - 1); ++line)
      if (const std::string source = resolver.textOf(*place, line); !source.empty())
        text += fmt::format("      {:>5} | {}\n", line, source);
  return text;
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
    std::optional<Frame> place = resolver.innermost(argument.made.stack, argument.made.op);
    std::string line = fmt::format("    {:<12} on {:<7} {:<12} {}", nameOf(argument), argument.device,
                                   argument.shape, describeMade(argument, place));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n" + snippet(place, resolver);
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

/// What to change for errors that are not about arguments on different devices, by LibTorch's words.
struct KnownChange {
  const char *words;
  const char *change;
};

constexpr KnownChange kKnownChanges[] = {
    {"resides on host memory", "make the tensor without a device and move it with .to()"},
    {"Expected a 'cuda' device type for generator",
     "leave the generator out, or give at::globalContext().defaultGenerator(device)"},
    {"Expected a 'cpu' device type for generator", "leave the generator out, or give one of the CPU"},
    {"dense CPU tensors can be pinned", "leave out pin_memory(), which is for tensors on the CPU"},
    {"'lengths' argument should be a 1D CPU int64 tensor", "give 'lengths' on the CPU ('.cpu()')"},
    {"tensor_indices_or_sections to be on cpu", "give the indices or sections on the CPU ('.cpu()')"},
};

/// "use a device that exists, or run with --virtual-gpus 8" for "... asked for cuda:7, but there are ...".
std::string changeOfOrdinal(const ErrorRecord &error) {
  constexpr std::string_view before = "asked for cuda:";
  constexpr int mostVirtualGpus = 64;
  const std::size_t begin = error.text.find(before);
  const std::string rest = begin == std::string::npos ? "" : error.text.substr(begin + before.size());
  const std::optional<std::int64_t> index =
      parseInteger(rest.substr(0, rest.find_first_not_of("0123456789")));
  const std::string change = "use a device that exists";
  return index && *index < mostVirtualGpus
             ? fmt::format("{}, or run with --virtual-gpus {}", change, *index + 1)
             : change;
}

std::string knownChange(const ErrorRecord &error) {
  if (error.errorClass == "invalid-ordinal")
    return changeOfOrdinal(error);
  for (const KnownChange &known : kKnownChanges)
    if (error.text.find(known.words) != std::string::npos)
      return known.change;
  return "";
}

/// For gradients that backward() gets or a node returns.
std::string describeGradientFix(const ErrorRecord &error, const std::optional<Frame> &failing) {
  std::string device = deviceOfGradient(error);
  if (device.empty())
    return "";
  if (!error.backwardNode.empty())
    return fmt::format("  change backward() of {}: return gradients on {}\n", nodeName(error), device);
  return fmt::format("  change {}: give backward() a gradient on {}\n",
                     failing ? displayPlace(*failing) : "the call of backward()", device);
}

/// "'a'", "'a' and 'b'", "'a', 'b', 'c' and 2 more"
std::string namesOf(const std::vector<const ErrorArgument *> &arguments) {
  constexpr std::size_t most = 4;
  std::vector<std::string> names;
  for (const ErrorArgument *argument : arguments)
    names.push_back(fmt::format("'{}'", nameOf(*argument)));
  if (names.size() == 1)
    return names.front();
  const std::string last =
      names.size() > most ? fmt::format("{} more", names.size() - most + 1) : std::move(names.back());
  names.resize(std::min(names.size(), most) - 1);
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

/// The odd argument and those that are where it is. Scalars in 0-dim tensors may be anywhere.
std::vector<const ErrorArgument *> misplacedArguments(const ErrorRecord &error, const OddArgument &odd) {
  std::vector<const ErrorArgument *> misplaced;
  for (std::size_t i = 0; i < error.arguments.size(); ++i) {
    const ErrorArgument &argument = error.arguments[i];
    if (i == odd.index || (argument.device == error.arguments[odd.index].device && argument.shape != "[]"))
      misplaced.push_back(&argument);
  }
  return misplaced;
}

/// "net.cpp:9: create it on cuda:0", for each place where a misplaced argument was made.
std::vector<std::string> changesWhereMade(const std::vector<const ErrorArgument *> &misplaced,
                                          const std::string &device, FrameResolver &resolver) {
  std::map<std::pair<std::string, bool>, std::vector<const ErrorArgument *>> places;
  for (const ErrorArgument *argument : misplaced) {
    // Memory of the program is where it is.
    const bool moves = argument->made.how == "moved" || argument->made.op == "torch::from_blob";
    if (std::optional<Frame> made = resolver.innermost(argument->made.stack, argument->made.op))
      places[{displayPlace(*made), moves}].push_back(argument);
  }
  std::vector<std::string> changes;
  for (const auto &[place, arguments] : places) {
    const std::string what = misplaced.size() == 1    ? "it"
                             : arguments == misplaced ? "them"
                                                      : namesOf(arguments);
    changes.push_back(fmt::format("{}: {} {} {} {}", place.first, place.second ? "move" : "create", what,
                                  place.second ? "to" : "on", device));
  }
  return changes;
}

/// "move 'other' to cuda:0, where 'self' is"
std::string moveAtCall(const ErrorRecord &error, const OddArgument &odd) {
  std::vector<const ErrorArgument *> moving = misplacedArguments(error, odd);
  const ErrorArgument *goal = &error.arguments[odd.reference];
  // What is written in place stays where it is: the write into a copy of it would be lost.
  const bool inPlace = error.op.size() > 1 && error.op.back() == '_' && error.op[error.op.size() - 2] != '_';
  if (inPlace && moving.front() == &error.arguments.front()) {
    goal = moving.front();
    moving.clear();
    for (const ErrorArgument &argument : error.arguments)
      if (argument.device != goal->device)
        moving.push_back(&argument);
  }
  return fmt::format("move {} to {}, where '{}' is", namesOf(moving), goal->device, nameOf(*goal));
}

std::string describeFix(const ErrorRecord &error, const std::optional<Frame> &failing,
                        FrameResolver &resolver) {
  if (const std::string change = knownChange(error); failing && !change.empty())
    return fmt::format("  change {}: {}\n", displayPlace(*failing), change);
  // Where memory is lacking, nothing has to be moved.
  std::optional<OddArgument> odd =
      error.errorClass == "out-of-memory" ? std::nullopt : findOddArgument(error);
  if (!odd)
    return describeGradientFix(error, failing);
  const std::vector<const ErrorArgument *> misplaced = misplacedArguments(error, *odd);
  const std::string move = moveAtCall(error, *odd);
  const std::vector<std::string> changes = changesWhereMade(misplaced, odd->expected, resolver);
  const std::string made = fmt::format("{}", fmt::join(changes, "; "));
  if (!changes.empty() && failing)
    return fmt::format("  change {}; or {}: {}\n", made, displayPlace(*failing), move);
  if (failing)
    return fmt::format("  change {}: {}\n", displayPlace(*failing), move);
  return changes.empty() ? fmt::format("  {}\n", move) : fmt::format("  change {}\n", made);
}

/// Whether the frame is in a Python package that was installed.
bool isInstalled(const Frame &frame) {
  return frame.file.find("/site-packages/") != std::string::npos ||
         frame.file.find("/dist-packages/") != std::string::npos;
}

/// Who called: other lines of the program, or, for the backward pass, the line whose gradient is computed.
std::string describeCallers(const std::vector<Frame> &stack, std::size_t first) {
  constexpr std::size_t mostCallers = 4;
  std::string text;
  for (std::size_t i = first; i < std::min(stack.size(), first + mostCallers); ++i)
    text += fmt::format("    called from {}\n", displayPlace(stack[i]));
  // Where all of that is in Python packages, the line of the program that led there.
  const std::size_t shown = std::min(stack.size(), first + mostCallers);
  const auto own = std::find_if_not(stack.begin(), stack.end(), isInstalled);
  if (own != stack.end() && own - stack.begin() >= static_cast<std::ptrdiff_t>(shown))
    text += fmt::format("    ... called from {}\n", displayPlace(*own));
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
         snippet(forward.front(), resolver) + describeCallers(forward, 1);
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
  // An argument on the CPU before one on another GPU; scalars in 0-dim tensors may often be on the CPU.
  auto odder = [&](const ErrorArgument &a, const ErrorArgument &b) {
    auto rank = [](const ErrorArgument &argument) {
      return argument.device != "cpu" ? 0 : argument.shape == "[]" ? 1 : 2;
    };
    return rank(a) > rank(b);
  };
  std::size_t odd = arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].device != arguments[reference].device &&
        (odd == arguments.size() || odder(arguments[i], arguments[odd])))
      odd = i;
  return OddArgument{odd, arguments[reference].device, reference};
}

std::string otherEnd(const ErrorRecord &error, const std::vector<UncaughtException> &uncaught, int status) {
  for (const UncaughtException &exception : uncaught) {
    if (exception.source.rank != error.source.rank || exception.source.pid != error.source.pid)
      continue;
    // Code that throws it again in another exception keeps its text.
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
    failing = resolver.innermost(error.stack, error.op);
  std::string text = describeText(error);
  std::string operation = error.op.empty() ? "a call" : error.op;
  text += failing ? fmt::format("  in {} at {}\n", operation, displayPlace(*failing))
                  : fmt::format("  in {}\n", operation);
  text += snippet(failing, resolver);
  text += describeCallers(stack, 1);
  text += describeBackward(error, resolver);
  text += describeArguments(error, resolver);
  text += describeFix(error, failing, resolver);
  if (!failing)
    text += describeMissingLine(error, resolver);
  return text;
}

} // namespace devicerun
