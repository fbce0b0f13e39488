#include "launch/Options.h"

#include "base/RunError.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

namespace devicerun {
namespace {

constexpr int kMostRanks = 4096;
constexpr int kMostNodes = 65536;
constexpr int kMostVirtualGpus = 64; // what libvirtual_cuda takes

[[noreturn]] void usageError(const std::string &message) {
  throw RunError(ExitUsage, message + "; see device-run --help");
}

int numberBetween(const std::string &name, const std::string &text, int least, int most) {
  std::optional<std::int64_t> value = parseInteger(text);
  if (!value || *value < least || *value > most)
    usageError(fmt::format("{} takes a number from {} to {}, not '{}'", name, least, most, text));
  return static_cast<int>(*value);
}

void setRanks(Options &options, const std::string &name, const std::string &text) {
  if (text == "gpu") {
    options.rankCount = RankCount::Gpus;
  } else if (text == "auto") {
    options.rankCount = RankCount::Auto;
  } else if (text == "cpu") {
    options.rankCount = RankCount::Cpus;
  } else {
    options.ranks = numberBetween(name, text, 1, kMostRanks);
    options.rankCount = RankCount::Number;
  }
}

// N, or MIN:MAX as for elastic jobs where both are the same.
void setNodes(Options &options, const std::string &name, const std::string &text) {
  const std::size_t colon = text.find(':');
  options.nodes = numberBetween(name, text.substr(0, colon), 1, kMostNodes);
  options.nodesGiven = true;
  if (colon != std::string::npos &&
      numberBetween(name, text.substr(colon + 1), 1, kMostNodes) != options.nodes)
    usageError(fmt::format(
        "{} {}: the number of machines does not change while a job runs here; give one number", name, text));
}

// HOST:PORT, HOST, or [IPV6]:PORT.
void setEndpoint(Options &options, const std::string &name, const std::string &text) {
  std::size_t colon = text.rfind(':');
  bool bracketed = !text.empty() && text.front() == '[';
  std::size_t closing = text.find(']');
  if (bracketed && closing == std::string::npos)
    usageError(fmt::format("{} takes HOST:PORT, not '{}'", name, text));
  if (bracketed && colon < closing)
    colon = std::string::npos;
  std::string host = text.substr(0, colon);
  if (bracketed)
    host = text.substr(1, closing - 1);
  if (host.empty())
    usageError(fmt::format("{} takes HOST:PORT, not '{}'", name, text));
  options.masterAddress = host;
  options.usualPort = 29400;
  if (colon != std::string::npos)
    options.masterPort = numberBetween("the port of " + name, text.substr(colon + 1), 0, 65535);
}

struct Option {
  std::string name;
  std::string alias; ///< a second name, or empty
  std::string value; ///< what --help calls its value; empty for a switch
  std::string help;  ///< empty: accepted as torchrun does, not advertised
  std::function<void(Options &, const std::string &name, const std::string &value)> apply;
};

using Value = const std::string &;

std::vector<Option> jobOptions() {
  return {
      {"--nproc-per-node", "-n", "RANKS",
       "ranks to start on this machine; also gpu (one per virtual GPU), cpu, auto. Left out, the program is "
       "started as it is, without the variables of a rank",
       setRanks},
      {"--nnodes", "", "N", "machines of the job; start device-run on each", setNodes},
      {"--node-rank", "", "R", "which of the machines this is, from 0",
       [](Options &o, Value name, Value text) {
         o.nodeRank = numberBetween(name, text, 0, kMostNodes - 1);
         o.nodesGiven = true;
       }},
      {"--rdzv-endpoint", "", "HOST:PORT", "where rank 0 listens; needed when there are several machines",
       setEndpoint},
      {"--master-addr", "", "HOST", "the host of --rdzv-endpoint alone",
       [](Options &o, Value, Value text) { o.masterAddress = text; }},
      {"--master-port", "", "PORT", "the port of --rdzv-endpoint alone",
       [](Options &o, Value name, Value text) { o.masterPort = numberBetween(name, text, 0, 65535); }},
      {"--rdzv-id", "", "NAME", "name of the job, TORCHELASTIC_RUN_ID",
       [](Options &o, Value, Value text) { o.runId = text; }},
      {"--rdzv-backend", "", "NAME", "",
       [](Options &, Value name, Value text) {
         if (text != "c10d" && text != "static")
           usageError(
               fmt::format("{} '{}' is not supported: rank 0 holds the store, as with 'static'", name, text));
       }},
      {"--max-restarts", "", "K", "start all ranks again after a failure, at most K times",
       [](Options &o, Value name, Value text) { o.maxRestarts = numberBetween(name, text, 0, 1000); }},
      {"--log-dir", "", "DIR", "also write DIR/RUN/attempt_K/RANK/stdout.log and stderr.log",
       [](Options &o, Value, Value text) { o.logDirectory = text; }},
      {"--timeout", "", "S", "end everything after S seconds with exit code 124",
       [](Options &o, Value name, Value text) {
         o.timeoutSeconds = parseSeconds(text);
         if (!o.timeoutSeconds)
           usageError(fmt::format("{} takes a number of seconds, not '{}'", name, text));
       }},
      {"--kill-after", "", "S", "time the ranks have to end after Ctrl-C or SIGTERM, 30 seconds",
       [](Options &o, Value name, Value text) {
         std::optional<double> seconds = parseSeconds(text);
         if (!seconds)
           usageError(fmt::format("{} takes a number of seconds, not '{}'", name, text));
         o.killAfterSeconds = *seconds;
       }},
  };
}

/// What torchrun takes and has no meaning here: programs are run as they are, output always goes to the
/// terminal and to --log-dir, and no agent has to find others.
std::vector<Option> torchrunOptions() {
  auto nothing = [](Options &, Value, Value) {};
  std::vector<Option> options = {
      {"--role", "", "NAME", "", [](Options &o, Value, Value text) { o.role = text; }},
      {"--standalone", "", "", "", nothing},
      {"--no-python", "", "", "", nothing},
      {"--tee", "-t", "STREAMS", "", nothing},
      {"--redirects", "-r", "STREAMS", "", nothing},
  };
  for (const char *name : {"--rdzv-conf", "--monitor-interval", "--start-method", "--local-addr"})
    options.push_back({name, "", "VALUE", "", nothing});
  return options;
}

std::vector<Option> gpuOptions() {
  return {
      {"--virtual-gpus", "", "N", "run the program on N virtual GPUs",
       [](Options &o, Value name, Value text) {
         o.virtualGpus = numberBetween(name, text, 0, kMostVirtualGpus);
       }},
      {"--gpu-memory", "", "SIZE", "memory of each virtual GPU, such as 24G or 512M",
       [](Options &o, Value name, Value text) {
         o.gpuMemory = parseBytes(text);
         if (!o.gpuMemory)
           usageError(fmt::format("{} takes a size such as 24G or 512M, not '{}'", name, text));
       }},
      {"--isolate", "", "", "make host code that touches memory of a virtual GPU fault",
       [](Options &o, Value, Value) { o.isolate = true; }},
      {"--explain", "", "",
       "no virtual GPUs: explain device errors of the program on the devices that it has",
       [](Options &o, Value, Value) { o.explain = true; }},
      {"--trace", "", "FILE",
       "write a trace of operators, copies and device errors, for ui.perfetto.dev or chrome://tracing",
       [](Options &o, Value, Value text) { o.traceFile = text; }},
      {"--findings", "", "SARIF",
       "say which findings of this report the run confirms, and write that into it",
       [](Options &o, Value, Value text) { o.findingsFile = text; }},
      {"--findings-out", "", "FILE", "write the judged report to FILE instead",
       [](Options &o, Value, Value text) { o.findingsOut = text; }},
  };
}

std::vector<Option> otherOptions() {
  return {
      {"--help", "-h", "", "show this", [](Options &o, Value, Value) { o.help = true; }},
      {"--version", "", "", "show the version", [](Options &o, Value, Value) { o.version = true; }},
  };
}

const std::vector<Option> &allOptions() {
  static const std::vector<Option> all = [] {
    std::vector<Option> options = jobOptions();
    for (std::vector<Option> group : {torchrunOptions(), gpuOptions(), otherOptions()})
      options.insert(options.end(), group.begin(), group.end());
    return options;
  }();
  return all;
}

const Option &findOption(const std::string &name) {
  std::vector<std::string> names;
  for (const Option &option : allOptions()) {
    if (name == option.name || name == option.alias)
      return option;
    names.push_back(option.name);
  }
  std::optional<std::string> near = nearestTo(name, names);
  usageError(
      fmt::format("unknown option '{}'{}", name, near ? fmt::format("; did you mean {}?", *near) : ""));
}

/// An argument taken apart: "--name=value", "-n4", "--name".
struct Argument {
  std::string name;
  std::optional<std::string> value;
};

Argument takeApart(const std::string &text) {
  if (text.compare(0, 2, "--") != 0)
    return text.size() > 2 && text[1] == 'n' ? Argument{"-n", text.substr(2)} : Argument{text, std::nullopt};
  std::size_t equals = text.find('=');
  Argument argument{text.substr(0, equals), std::nullopt};
  std::replace(argument.name.begin(), argument.name.end(), '_', '-');
  if (equals != std::string::npos)
    argument.value = text.substr(equals + 1);
  return argument;
}

void checkGpuOptions(const Options &options) {
  if (options.virtualGpus && options.explain)
    usageError("--explain is for real GPUs; with --virtual-gpus errors are explained anyway");
  if (options.virtualGpus)
    return;
  const char *needing = options.gpuMemory            ? "--gpu-memory"
                        : options.isolate            ? "--isolate"
                        : !options.traceFile.empty() ? "--trace"
                                                     : nullptr;
  if (needing)
    usageError(fmt::format("{} needs --virtual-gpus N: only virtual GPUs can do this", needing));
  if (!options.findingsFile.empty() && !options.explain)
    usageError("--findings needs --virtual-gpus N, or --explain on real GPUs");
  if (options.rankCount == RankCount::Gpus)
    usageError("--nproc-per-node gpu needs --virtual-gpus N; on real GPUs give their number");
}

void checkTogether(const Options &options) {
  checkGpuOptions(options);
  if (!options.findingsOut.empty() && options.findingsFile.empty())
    usageError("--findings-out needs --findings");
  if (options.rankCount == RankCount::Gpus && *options.virtualGpus == 0)
    usageError("--nproc-per-node gpu with --virtual-gpus 0 asks for no rank at all");
  if (options.nodeRank.value_or(0) >= options.nodes)
    usageError(fmt::format("--node-rank {} does not exist with --nnodes {}: ranks count from 0",
                           *options.nodeRank, options.nodes));
  if (options.nodes > 1 && (options.masterAddress.empty() || options.masterPort == 0))
    usageError("--nnodes needs --rdzv-endpoint HOST:PORT, the same on every machine");
  if (options.nodes > 1 && !options.nodeRank)
    usageError(fmt::format(
        "--nnodes {} needs --node-rank R, another one from 0 to {} on each machine: the launchers "
        "do not agree on one by themselves",
        options.nodes, options.nodes - 1));
  if (options.nodes > 1 && options.maxRestarts > 0)
    usageError("--max-restarts works on one machine only: the other machines would not notice");
  if (options.command.empty())
    usageError("no program to run; put it after --: device-run -n 2 -- ./train");
}

} // namespace

Options parseOptions(const std::vector<std::string> &arguments) {
  Options options;
  std::size_t next = 0;
  while (next < arguments.size()) {
    const std::string &text = arguments[next];
    if (text == "--" || text.size() < 2 || text[0] != '-') {
      next += text == "--" ? 1 : 0;
      break;
    }
    Argument argument = takeApart(text);
    const Option &option = findOption(argument.name);
    ++next;
    if (option.value.empty() && argument.value)
      usageError(fmt::format("{} takes no value", argument.name));
    if (!option.value.empty() && !argument.value) {
      if (next == arguments.size() || arguments[next] == "--")
        usageError(fmt::format("{} needs a value: {} {}", argument.name, argument.name, option.value));
      argument.value = arguments[next++];
    }
    if (!option.value.empty() && argument.value->empty())
      usageError(fmt::format("{} needs a value, not an empty text: {} {}", argument.name, argument.name,
                             option.value));
    option.apply(options, argument.name, argument.value.value_or(""));
  }
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  if (options.help || options.version)
    return options;
  checkTogether(options);
  if (options.nodes > 1 && !options.masterPort)
    options.masterPort = options.usualPort;
  return options;
}

std::string helpText() {
  auto describe = [](const std::vector<Option> &group) {
    std::string text;
    for (const Option &option : group) {
      if (option.help.empty())
        continue;
      std::string left = option.alias.empty() ? option.name : option.alias + ", " + option.name;
      if (!option.value.empty())
        left += " " + option.value;
      text += fmt::format("  {:<28} {}\n", left, option.help);
    }
    return text;
  };
  return "device-run [options] -- PROGRAM [ARGUMENTS...]\n"
         "device-run doctor [FILES...]    examines this machine; see device-run doctor --help\n\n"
         "Starts the ranks of a distributed program with torchrun's environment, on real or virtual GPUs.\n\n"
         "Ranks:\n" +
         describe(jobOptions()) + "\nVirtual GPUs:\n" + describe(gpuOptions()) + "\nOther:\n" +
         describe(otherOptions()) +
         "\nWithout -n under torchrun, srun or mpirun it runs the one rank that these gave.\n"
         "The exit code is that of the rank that failed first, 128 plus the signal that ended it,\n"
         "2 for a wrong command line, 124 after --timeout, 126 and 127 as in shells.\n";
}

} // namespace devicerun
