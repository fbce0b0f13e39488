#include "analyzer/report/diagnostic/SelectFixes.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace devicetidy {
namespace {

auto placeOf(const Replacement &change) {
  return std::make_tuple(change.where.file, change.offset, change.offset + change.length);
}

bool overlap(const Replacement &a, const Replacement &b) {
  return a.where.file == b.where.file && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

} // namespace

FixSelection selectFixes(const std::vector<Diagnostic> &diagnostics) {
  FixSelection result;
  result.isChosen.resize(diagnostics.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < diagnostics.size(); ++i)
    if (diagnostics[i].fix && !diagnostics[i].isSuppressed)
      order.push_back(i);
  const auto changeOf = [&](std::size_t i) -> const Replacement & { return diagnostics[i].fix->change; };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto first = placeOf(changeOf(a)), second = placeOf(changeOf(b));
    return first != second ? first < second : a < b;
  });
  std::set<std::size_t> contradicted;
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const Replacement &a = changeOf(order[i]), &b = changeOf(order[j]);
      if (placeOf(a) != placeOf(b))
        break;
      if (!(a == b))
        contradicted.insert({order[i], order[j]});
    }
  for (std::size_t i : order) {
    const Replacement &change = changeOf(i);
    const bool isKnown = !result.changes.empty() && result.changes.back() == change;
    const bool isFree = result.changes.empty() || !overlap(result.changes.back(), change);
    if (contradicted.count(i) || (!isKnown && !isFree)) {
      result.conflicting.push_back(&diagnostics[i]);
      continue;
    }
    result.isChosen[i] = true;
    if (!isKnown)
      result.changes.push_back(change);
  }
  return result;
}

std::string withChanges(std::string_view source, const std::vector<Replacement> &changes) {
  std::string result;
  std::size_t at = 0;
  for (const Replacement &change : changes) {
    result += source.substr(at, change.offset - at);
    result += change.text;
    at = change.offset + change.length;
  }
  return result += source.substr(std::min(at, source.size()));
}

} // namespace devicetidy
