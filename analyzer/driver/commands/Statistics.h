//===- Statistics.h - what --stats prints -----------------------*- C++ -*-===//
//
// Collects the times and counts of a run and prints them as a table.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/programs/Programs.h"
#include "analyzer/driver/programs/ReadUnits.h"
#include "analyzer/facts/Program.h"
#include "analyzer/solve/solution/Solution.h"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace devicetidy::driver {

class Statistics {
public:
  /// Time since the last phase ended goes to `phase`.
  void endPhase(const std::string &phase);

  void addUnits(const std::vector<Unit> &units);
  void addReading(const ReadCounts &counts) { reading += counts; }
  void addPrograms(const Programs &programs, const LinkMap &links);
  void addSolution(const SolveStats &stats);
  void addSkippedFiles(std::size_t count) { skippedFiles += count; }

  std::string table() const;

  /// How often code was left out that could have had findings.
  std::size_t omissions() const;

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point phaseStart = Clock::now();
  std::vector<std::pair<std::string, double>> phases;
  std::size_t units = 0, brokenUnits = 0, functions = 0, facts = 0, programs = 0, skippedFiles = 0;
  std::size_t linkedPrograms = 0, linkedUnits = 0, keptApart = 0;
  std::vector<std::string> linkProblems;
  std::map<std::string, std::size_t> opaque, skippedFunctions, uninstantiated;
  std::set<std::string> lowered;
  ReadCounts reading;
  SolveStats solved;
};

} // namespace devicetidy::driver
