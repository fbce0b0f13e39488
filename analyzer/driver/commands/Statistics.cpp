#include "analyzer/driver/commands/Statistics.h"

#include "analyzer/solve/domain/Bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace devicetidy::driver {
namespace {

using Counts = std::map<std::string, std::size_t>;

/// The entries of `counts`, most frequent first, at most `limit` of them.
std::string ranking(const std::string &title, const Counts &counts, std::size_t limit) {
  if (counts.empty())
    return {};
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::size_t total = 0;
  for (const auto &[name, count] : sorted)
    total += count;
  std::string text = fmt::format("{} ({} in all, {} different):\n", title, total, sorted.size());
  for (std::size_t i = 0; i < sorted.size() && i < limit; ++i)
    text += fmt::format("{:>10}  {}\n", sorted[i].second, sorted[i].first);
  if (sorted.size() > limit)
    text += fmt::format("            and {} more\n", sorted.size() - limit);
  return text;
}

std::string countLine(const std::string &what, std::size_t count) {
  return fmt::format("{:>10}  {}\n", count, what);
}

void addCounts(Counts &sum, const Counts &counts) {
  for (const auto &[name, count] : counts)
    sum[name] += count;
}

} // namespace

void Statistics::endPhase(const std::string &phase) {
  const Clock::time_point now = Clock::now();
  phases.emplace_back(phase, std::chrono::duration<double>(now - phaseStart).count());
  phaseStart = now;
}

void Statistics::addUnits(const std::vector<Unit> &read) {
  for (const Unit &unit : read) {
    ++units;
    brokenUnits += unit.parseErrors.empty() ? 0 : 1;
    for (const auto &[id, function] : unit.functions) {
      functions += function.hasBody ? 1 : 0;
      if (function.hasBody)
        lowered.insert(function.name.str());
      for (const Block &block : function.blocks)
        facts += block.facts.size();
    }
    for (const auto &[expression, count] : unit.opaqueExpressions)
      opaque[expression.str()] += count;
    for (Name function : unit.skippedFunctions)
      ++skippedFunctions[function.str()];
    for (Name pattern : unit.uninstantiated)
      ++uninstantiated[pattern.str()];
  }
}

void Statistics::addPrograms(const Programs &grouped, const LinkMap &links) {
  linkedPrograms = grouped.fromLinks;
  linkedUnits = grouped.linkedUnits;
  keptApart = grouped.keptApart;
  linkProblems = links.problems;
}

void Statistics::addSolution(const SolveStats &stats) {
  ++programs;
  solved.contexts += stats.contexts;
  solved.factsRun += stats.factsRun;
  solved.rowsLeftOut += stats.rowsLeftOut;
  addCounts(solved.unknownCalls, stats.unknownCalls);
  addCounts(solved.capsHit, stats.capsHit);
  const auto &unreached = stats.unreachedFunctions;
  solved.unreachedFunctions.insert(solved.unreachedFunctions.end(), unreached.begin(), unreached.end());
}

std::size_t Statistics::omissions() const {
  // The other bounds make a value unknown. A recursion has shown what it does by the time it is cut off.
  static constexpr std::array<Bound, 5> leavingOut = {Bound::CallDepth, Bound::Contexts, Bound::Overriders,
                                                      Bound::VisitsOfBlock, Bound::FactsOfEntry};
  std::size_t hits = 0;
  for (const Bound bound : leavingOut)
    if (const auto found = solved.capsHit.find(nameOf(bound)); found != solved.capsHit.end())
      hits += found->second;
  return hits;
}

std::string Statistics::table() const {
  std::string text = "time in seconds:\n";
  double total = 0;
  for (const auto &[phase, seconds] : phases) {
    text += fmt::format("{:>10.3f}  {}\n", seconds, phase);
    total += seconds;
  }
  text += fmt::format("{:>10.3f}  total\n", total);
  text += "counts:\n" + countLine("translation units", units) + countLine("of them parsed", reading.parsed) +
          countLine("of them from the cache", reading.fromCache) +
          countLine("preambles made", reading.preamblesMade) +
          countLine("translation units parsed with a preamble", reading.withPreamble) +
          countLine("parsed again without, for errors", reading.preambleFallbacks) +
          countLine("of them with errors", brokenUnits) +
          countLine("third-party translation units skipped", skippedFiles) +
          countLine("translation units named by the build's link information", linkedUnits) +
          countLine("programs", programs) + countLine("of them by link information", linkedPrograms) +
          countLine("objects left out of a program that has other definitions of their names", keptApart) +
          countLine("functions with a body", functions) + countLine("facts", facts) +
          countLine("function contexts solved", solved.contexts) + countLine("facts run", solved.factsRun) +
          countLine("rows left out", solved.rowsLeftOut);
  for (const std::string &problem : linkProblems)
    text += "link information not read: " + problem + "\n";
  text += ranking("calls without a model or a body", solved.unknownCalls, 20);
  text += ranking("bounds that were hit", solved.capsHit, 20);
  text += ranking("functions left out (errors or coroutines)", skippedFunctions, 20);
  Counts unreached;
  for (const std::string &function : solved.unreachedFunctions)
    ++unreached[function];
  text += ranking("functions no analysis entered", unreached, 20);
  Counts templates;
  for (const auto &[name, count] : uninstantiated)
    if (!lowered.count(name))
      templates[name] = count;
  text += ranking("templates without an instantiation, not analysed", templates, 20);
  text += ranking("expressions not understood", opaque, 20);
  return text;
}

} // namespace devicetidy::driver
