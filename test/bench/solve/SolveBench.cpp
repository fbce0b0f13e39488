// usage: solve-bench [--max-exponent=X] [options of Google Benchmark]
//        solve-bench --list | --once=SHAPE/SIZE
//
// Measures how long solve() takes on generated programs that grow in one way each, and fits time = c *
// size^k. Prints the exponents k and what the last doubling cost; with --max-exponent fails when one is
// above. Processor time, and the quickest of several repetitions, so that other work on the machine counts
// little. growth.py measures the same without a clock: --list prints the shapes and their sizes, --once
// solves one of them once.
#include "analyzer/solve/Solve.h"
#include "test/bench/solve/Shapes.h"
#include "test/unit/solve/FactsHarness.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

using namespace devicetidy;

/// Shape -> size -> seconds, the quickest repetition.
using Times = std::map<std::string, std::map<int, double>>;

class Collector : public benchmark::ConsoleReporter {
public:
  explicit Collector(Times &times) : times(times) {}

  void ReportRuns(const std::vector<Run> &runs) override {
    for (const Run &run : runs) {
      if (run.run_type != Run::RT_Iteration)
        continue;
      const double seconds = run.cpu_accumulated_time / static_cast<double>(run.iterations);
      std::map<int, double> &sizes = times[run.run_name.function_name];
      auto [entry, isNew] = sizes.emplace(static_cast<int>(run.complexity_n), seconds);
      if (!isNew)
        entry->second = std::min(entry->second, seconds);
    }
    ConsoleReporter::ReportRuns(runs);
  }

private:
  Times &times;
};

/// Slope of log(seconds) over log(size), by least squares.
double exponent(const std::map<int, double> &times) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto &[size, seconds] : times) {
    const double a = std::log(size), b = std::log(seconds);
    n += 1, x += a, y += b, xx += a * a, xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

/// The same between the two largest sizes.
double lastExponent(const std::map<int, double> &times) {
  auto last = std::prev(times.end()), before = std::prev(last);
  return std::log(last->second / before->second) / std::log(double(last->first) / before->first);
}

void measure(benchmark::State &state, const bench::Shape &shape) {
  const int size = static_cast<int>(state.range(0));
  const Program program = test::programOf(shape.facts(size));
  for (auto _ : state)
    benchmark::DoNotOptimize(solve(program));
  state.SetComplexityN(size);
}

void registerShapes() {
  for (const bench::Shape &shape : bench::shapes()) {
    auto *registered = benchmark::RegisterBenchmark(
        shape.name, [&shape](benchmark::State &state) { measure(state, shape); });
    for (int size : shape.sizes)
      registered->Arg(size);
    registered->MinTime(0.05)->Repetitions(3)->Unit(benchmark::kMillisecond);
  }
}

void list() {
  for (const bench::Shape &shape : bench::shapes())
    for (int size : shape.sizes)
      std::printf("%s/%d\n", shape.name, size);
}

/// What growth.py counts the instructions of.
[[gnu::noinline]] void countedSolve(const Program &program) {
  const Solution solution = solve(program);
  benchmark::DoNotOptimize(&solution);
}

/// Solves "SHAPE/SIZE"; false when there is no such shape.
bool solveOnce(const std::string &name) {
  const std::size_t slash = name.find('/');
  for (const bench::Shape &shape : bench::shapes())
    if (slash != std::string::npos && name.substr(0, slash) == shape.name) {
      solve(test::programOf(shape.facts(shape.sizes.front()))); // reads the model tables
      countedSolve(test::programOf(shape.facts(std::atoi(name.c_str() + slash + 1))));
      return true;
    }
  return false;
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    list();
    return 0;
  }
  if (argc == 2 && std::strncmp(argv[1], "--once=", 7) == 0)
    return solveOnce(argv[1] + 7) ? 0 : 2;
  constexpr const char *limitOption = "--max-exponent=";
  double limit = 0;
  int kept = 1;
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], limitOption, std::strlen(limitOption)) == 0)
      limit = std::atof(argv[i] + std::strlen(limitOption));
    else
      argv[kept++] = argv[i];
  benchmark::Initialize(&kept, argv);
  if (benchmark::ReportUnrecognizedArguments(kept, argv))
    return 2;
  Times times;
  Collector collector(times);
  registerShapes();
  benchmark::RunSpecifiedBenchmarks(&collector);

  bool tooSteep = false;
  std::printf("\n%-14s %9s %14s\n", "grows in", "exponent", "last doubling");
  for (const auto &[shape, sizes] : times) {
    if (sizes.size() < 2)
      continue;
    const double fit = exponent(sizes);
    const bool above = limit > 0 && fit > limit;
    tooSteep |= above;
    std::printf("%-14s %9.2f %14.2f%s\n", shape.c_str(), fit, lastExponent(sizes),
                above ? "  above the limit" : "");
  }
  return tooSteep ? 1 : 0;
}
