// usage: solve-scale [--units=N] [--reuse] [--max-seconds=X] [--max-mib=Y] DIRECTORY
//
// Writes the facts of a program of N units (2000 by default: a million statements) into DIRECTORY, unless
// --reuse says that they are there; then reads, links and solves them. Prints wall-clock time, processor time
// and peak memory; fails when the processor time or the memory is above its limit. The facts are written by
// another process, so that the memory is that of reading, linking and solving.
#include "analyzer/facts/Binary.h"
#include "analyzer/solve/Solve.h"
#include "test/bench/solve/ScaleProgram.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace devicetidy;
namespace fs = std::filesystem;

struct Options {
  int units = 2000;
  bool reuse = false;
  double maxSeconds = 0, maxMib = 0;
  fs::path directory;
};

[[noreturn]] void fail(const std::string &reason) {
  std::fprintf(stderr, "solve-scale: %s\n", reason.c_str());
  std::_Exit(2);
}

fs::path factsFile(const Options &options, int unit) {
  return options.directory /
         ("unit" + std::to_string(unit) + "-of-" + std::to_string(options.units) + ".facts");
}

void writeFacts(const Options &options) {
  for (int i = 0; i < options.units; ++i) {
    std::vector<Unit> units;
    units.push_back(bench::scaleUnit(i, options.units));
    std::ofstream(factsFile(options, i), std::ios::binary) << writeBinary(units);
  }
}

void writeFactsInAnotherProcess(const Options &options) {
  fs::create_directories(options.directory);
  const pid_t child = fork();
  if (child == 0) {
    writeFacts(options);
    std::_Exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
    fail("cannot write the facts into " + options.directory.string() + "; is the disk full?");
}

Unit readFacts(const fs::path &file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::string error;
  std::optional<std::vector<Unit>> units = readBinary(bytes, error);
  if (!units)
    fail(file.string() + ": " + error + "; delete the directory to have it written again");
  return std::move(units->front());
}

/// On two threads, as device-tidy -j 2 reads them.
std::vector<Unit> readAll(const Options &options) {
  std::vector<Unit> units(static_cast<std::size_t>(options.units));
  auto readEvery = [&](int first) {
    for (int i = first; i < options.units; i += 2)
      units[static_cast<std::size_t>(i)] = readFacts(factsFile(options, i));
  };
  std::thread other(readEvery, 1);
  readEvery(0);
  other.join();
  return units;
}

/// Wall-clock and processor time, both in seconds.
class Stopwatch {
public:
  void lap(const char *phase) {
    const double wall = wallNow() - wallStart, cpu = cpuNow() - cpuStart;
    std::printf("%-8s %7.2f s  %7.2f s of processor time\n", phase, wall, cpu);
    wallStart += wall, cpuStart += cpu;
  }
  static double cpuNow() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval &time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }

private:
  static double wallNow() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  double wallStart = wallNow(), cpuStart = cpuNow();
};

/// About the lines of a program: a full expression each.
std::size_t statementsOf(const Program &program) {
  std::size_t count = 0;
  for (Name id : program.order)
    for (const Block &block : program.function(id)->blocks)
      for (const Fact &fact : block.facts)
        count += fact.kind == FactKind::EndStatement;
  return count;
}

double peakMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

int measure(const Options &options) {
  const double cpuBefore = Stopwatch::cpuNow();
  Stopwatch watch;
  std::vector<Unit> units = readAll(options);
  watch.lap("read");
  const Program program = link(std::move(units));
  watch.lap("link");
  const Solution solution = solve(program);
  watch.lap("solve");

  const double cpu = Stopwatch::cpuNow() - cpuBefore, mib = peakMib();
  std::printf("in all   %7.2f s of processor time, peak memory %.0f MiB\n", cpu, mib);
  std::printf("%d units, %zu functions, %zu statements, %zu facts, %zu contexts, %zu conflicts\n",
              options.units, solution.stats.functions, statementsOf(program), solution.stats.facts,
              solution.stats.contexts, solution.conflicts.size());
  for (const auto &[bound, hits] : solution.stats.capsHit)
    std::printf("bound hit: %s, %zu times\n", bound.c_str(), hits);
  if (solution.conflicts.empty())
    fail("nothing was found; every tenth unit leaves its labels on the CPU");
  const bool isOver =
      (options.maxSeconds > 0 && cpu > options.maxSeconds) || (options.maxMib > 0 && mib > options.maxMib);
  if (isOver)
    std::printf("above the limit of %.0f s or %.0f MiB\n", options.maxSeconds, options.maxMib);
  return isOver ? 1 : 0;
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    auto valueOf = [&](const std::string &name) -> const char * {
      return argument.rfind(name, 0) == 0 ? argv[i] + name.size() : nullptr;
    };
    if (const char *value = valueOf("--units="))
      options.units = std::atoi(value);
    else if (const char *seconds = valueOf("--max-seconds="))
      options.maxSeconds = std::atof(seconds);
    else if (const char *mib = valueOf("--max-mib="))
      options.maxMib = std::atof(mib);
    else if (argument == "--reuse")
      options.reuse = true;
    else if (argument.rfind("--", 0) == 0 || !options.directory.empty())
      fail("what is '" + argument +
           "'? usage: solve-scale [--units=N] [--reuse] [--max-seconds=X] [--max-mib=Y] DIRECTORY");
    else
      options.directory = argument;
  }
  if (options.directory.empty() || options.units < 1)
    fail("usage: solve-scale [--units=N] [--reuse] [--max-seconds=X] [--max-mib=Y] DIRECTORY");
  return options;
}

} // namespace

int main(int argc, char **argv) {
  const Options options = parse(argc, argv);
  if (!options.reuse)
    writeFactsInAnotherProcess(options);
  return measure(options);
}
