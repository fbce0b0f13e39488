//===- Options.h - the command line of device-run ---------------*- C++ -*-===//
//
// The options as a struct, the parser that fills it, and the text of --help.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace devicerun {

/// How many ranks to start on this node.
enum class RankCount : std::uint8_t {
  Default, ///< not said: one, or the rank that an outer launcher gave
  Number,  ///< -n 4
  Gpus,    ///< --nproc-per-node gpu: one per virtual GPU
  Cpus,    ///< --nproc-per-node cpu: one per processor
  Auto     ///< --nproc-per-node auto: one per virtual GPU if there are any, else one per processor
};

struct Options {
  RankCount rankCount = RankCount::Default;
  int ranks = 1; ///< when rankCount is Number
  int nodes = 1;
  std::optional<int> nodeRank; ///< 0 when there is one machine
  bool nodesGiven = false;     ///< --nnodes or --node-rank was used
  std::string masterAddress;
  std::optional<int> masterPort; ///< 0: a free one
  int usualPort = 29500;         ///< where several machines meet when no port is given, as torchrun's
  std::string runId;
  std::string role = "default";
  int maxRestarts = 0;
  std::string logDirectory;

  std::optional<int> virtualGpus;
  std::optional<std::uint64_t> gpuMemory; ///< bytes per virtual GPU
  bool isolate = false;
  bool explain = false; ///< only record device errors, of the program's own devices
  std::string traceFile;
  std::string findingsFile;
  std::string findingsOut;

  std::optional<double> timeoutSeconds;
  double killAfterSeconds = 30; ///< as torchrun waits after a signal

  bool help = false;
  bool version = false;
  std::vector<std::string> command; ///< program and arguments
};

/// Reads the arguments after the program's own name. Option names may be written with underscores, as
/// torchrun allows. Throws RunError(ExitUsage) that names the argument and, for a slip, the nearest option.
Options parseOptions(const std::vector<std::string> &arguments);

/// The text of --help.
std::string helpText();

} // namespace devicerun
