//===- RowMerging.cpp - which ways are made one, and which are kept when there are too many ---===//
#include "analyzer/solve/domain/Comparisons.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/Row.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace devicetidy {
namespace {

// Merges rows with equal keys in place, into the first of each, the last rows first.
template <typename KeyOf> void mergeEqual(std::vector<Row> &rows, KeyOf keyOf, Term phi) {
  std::vector<std::uint64_t> keys;
  keys.reserve(rows.size());
  for (const Row &row : rows)
    keys.push_back(keyOf(row));
  for (std::size_t i = rows.size(); i-- > 1;) {
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(i),
               first = std::find(keys.begin(), end, keys[i]);
    if (first == end)
      continue;
    Row &target = rows[static_cast<std::size_t>(first - keys.begin())];
    target = joinRows(target, rows[i], phi);
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
    keys.erase(end);
  }
}

// Runs without GPUs have nothing to tell, nor has what rests on a bound: they make way for the others.
void dropMute(std::vector<Row> &rows) {
  const auto hasNoGpu = [](const Row &row) { return row.numberOf(scalarValue(availableTerm())) == 0; };
  for (bool (*isMute)(const Row &) : {+hasNoGpu, isBounded})
    if (!std::all_of(rows.begin(), rows.end(), isMute))
      rows.erase(std::remove_if(rows.begin(), rows.end(), isMute), rows.end());
}

// What one row has in one place: rows with the same `value` there are alike.
struct Cell {
  std::size_t value = 0;
  bool isOnGpu = false; ///< or may be
};

bool tellsOfGpus(const Value &value) {
  if (!value || !value->deviceHash)
    return false;
  const bool hasPlace =
      (is(value, ValueKind::Tensor) && !value->address.valid()) || is(value, ValueKind::Device);
  const auto isTold = [](const auto &values) {
    return std::any_of(values.begin(), values.end(), tellsOfGpus);
  };
  return (hasPlace && value->placement.kind != PlacementKind::Cpu) || isTold(value->elements) ||
         isTold(value->summary) ||
         std::any_of(value->fields.begin(), value->fields.end(),
                     [](const auto &field) { return tellsOfGpus(field.second); });
}

// What is run first is run while there is time: rows that have something on a GPU, or may, where others have
// not.
void putGpusFirst(std::vector<Row> &rows) {
  std::vector<bool> isOfGpus(rows.size());
  for (std::size_t i = 1; i < rows.size(); ++i)
    Store::forEachDifference(rows.front().store, rows[i].store,
                             [&](RootId, const Value &first, const Value &other) {
                               isOfGpus[0] = isOfGpus[0] || tellsOfGpus(first);
                               isOfGpus[i] = isOfGpus[i] || tellsOfGpus(other);
                             });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const bool isFirst : {true, false})
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (isOfGpus[i] == isFirst)
        sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

using Column = std::vector<Cell>; ///< of each row

// Where rows differ. Places that divide the rows alike are one column: there are about as many as there are
// flags that the rows come from.
class Differences {
public:
  explicit Differences(const std::vector<Row> &rows) {
    std::set<RootId> roots;
    for (const Row &row : rows)
      Store::forEachDifference(rows.front().store, row.store,
                               [&](RootId root, const Value &, const Value &) { roots.insert(root); });
    for (const RootId root : roots)
      addOf(rows, [&](const Row &row) { return row.store.get(root); });
    for (std::size_t i = 0; i < rows.front().registers.size(); ++i)
      addOf(rows, [&](const Row &row) { return i < row.registers.size() ? row.registers[i] : nullptr; });
  }

  std::vector<Column> columns() const {
    std::vector<Column> all;
    all.reserve(byDivision.size());
    for (const auto &[division, column] : byDivision)
      all.push_back(column);
    return all;
  }

private:
  template <typename ValueOf> void addOf(const std::vector<Row> &rows, ValueOf valueOf) {
    std::vector<Value> values;
    values.reserve(rows.size());
    for (const Row &row : rows)
      values.push_back(valueOf(row));
    add(values);
  }

  // The values that each row has in one place; null where it has none.
  void add(const std::vector<Value> &values) {
    const auto isAsFirst = [&](const Value &value) {
      return value && values.front() ? value->placeHash == values.front()->placeHash
                                     : !value == !values.front();
    };
    if (std::all_of(values.begin(), values.end(), isAsFirst))
      return;
    const auto isRecord = [&](const Value &value) {
      return value && is(value, ValueKind::Record) && value->type == values.front()->type;
    };
    if (isRecord(values.front()) && std::all_of(values.begin(), values.end(), isRecord))
      addFields(values);
    else
      addColumn(values);
  }

  void addFields(const std::vector<Value> &records) {
    std::set<Name> names;
    for (const Value &record : records)
      for (const auto &[name, field] : record->fields)
        names.insert(name);
    for (const Name name : names) {
      std::vector<Value> values;
      for (const Value &record : records) {
        const auto field = record->fields.find(name);
        values.push_back(field == record->fields.end() ? nullptr : field->second);
      }
      add(values);
    }
  }

  void addColumn(const std::vector<Value> &values) {
    std::map<std::uint64_t, std::size_t> numbers; // of each value
    std::vector<std::size_t> division;
    division.reserve(values.size());
    for (const Value &value : values)
      division.push_back(numbers.try_emplace(value ? value->placeHash : 0, numbers.size()).first->second);
    Column &column = byDivision.try_emplace(division, values.size()).first->second;
    for (std::size_t i = 0; i < values.size(); ++i)
      column[i] = {division[i], column[i].isOnGpu || tellsOfGpus(values[i])};
  }

  std::map<std::vector<std::size_t>, Column> byDivision;
};

// Chooses rows so that whatever some row has, one of the chosen has: each value in each place, each
// condition, and each two conditions, as far as that goes. Those without a GPU come last: there is nothing to
// tell of them.
class Choice {
  struct Gain {
    bool isOfGpus;
    std::size_t pairs, row;
    bool operator<(const Gain &other) const {
      return std::tie(isOfGpus, pairs, other.row) < std::tie(other.isOfGpus, other.pairs, row);
    }
  };

public:
  explicit Choice(const std::vector<Row> &rows) : features(rows.size()), isOfGpus(rows.size()) {
    for (const Column &column : Differences(rows).columns()) {
      std::size_t values = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        features[i].push_back(places + column[i].value);
        isOfGpus[i] = isOfGpus[i] || column[i].isOnGpu;
        values = std::max(values, column[i].value + 1);
      }
      places += values;
    }
    std::map<Condition, std::size_t> numbers;
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (const Condition &condition : rows[i].known)
        features[i].push_back(places + numbers.try_emplace(condition, numbers.size()).first->second);
    count = places + numbers.size();
    isCovered.resize(count * count);
  }

  /// The most telling row first: it is run before the others, while there is time.
  std::vector<std::size_t> best(std::size_t cap) {
    // What a row adds gets less as others are chosen: that of the one on top is counted anew.
    std::priority_queue<Gain> gains;
    for (std::size_t i = 0; i < features.size(); ++i)
      gains.push(gainOf(i));
    std::vector<std::size_t> chosen;
    while (chosen.size() < cap) {
      const std::size_t top = gains.top().row;
      gains.pop();
      if (const Gain now = gainOf(top); !gains.empty() && now < gains.top()) {
        gains.push(now);
        continue;
      }
      chosen.push_back(top);
      forEachPair(top, [&](std::size_t pair) { isCovered[pair] = true; });
    }
    return chosen;
  }

private:
  // Pairs of places say nothing that pairs of the conditions which they come from do not.
  template <typename Visitor> void forEachPair(std::size_t row, Visitor visit) {
    for (const std::size_t a : features[row]) {
      visit(a * count + a);
      for (const std::size_t b : features[row])
        if (places <= a && a < b)
          visit(a * count + b);
    }
  }

  Gain gainOf(std::size_t row) {
    Gain gain{isOfGpus[row], 0, row};
    forEachPair(row, [&](std::size_t pair) { gain.pairs += !isCovered[pair]; });
    return gain;
  }

  std::vector<std::vector<std::size_t>> features; ///< of each row: values in places, then conditions
  std::vector<bool> isOfGpus, isCovered;
  std::size_t places = 0, count = 0; ///< features that are places, and all
};

} // namespace

std::size_t mergeRows(std::vector<Row> &rows, std::size_t softCap, std::size_t cap, Term phi) {
  if (rows.size() < 2)
    return 0;
  mergeEqual(rows, [](const Row &row) { return row.stateDigest(); }, phi);
  if (rows.size() > softCap)
    dropMute(rows);
  if (rows.size() > softCap)
    mergeEqual(rows, [](const Row &row) { return row.placeDigest(); }, phi);
  if (rows.size() > softCap)
    putGpusFirst(rows);
  if (rows.size() <= cap)
    return 0;
  std::vector<Row> chosen;
  for (const std::size_t i : Choice(rows).best(cap))
    chosen.push_back(std::move(rows[i]));
  const std::size_t left = rows.size() - cap;
  rows = std::move(chosen);
  return left;
}

namespace {

bool areListsOneHoldsAll(const Value &a, const Value &b) {
  return is(a, ValueKind::List) && is(b, ValueKind::List) &&
         (isSummary(a) || isSummary(b) || a->elements.size() != b->elements.size()) &&
         (holdsAll(a, b) || holdsAll(b, a));
}

// One list for each iteration of a loop, as the loop made them.
bool areListsOfIterations(const Value &a, const Value &b) {
  const auto ofIterations = [](const Value &value) {
    return is(value, ValueKind::List) && value->type.empty() && value->summary.size() == 1 &&
           is(value->summary.front(), ValueKind::List);
  };
  return ofIterations(a) && ofIterations(b) && areListsOneHoldsAll(a->summary.front(), b->summary.front());
}

bool differInOneList(const Row &a, const Row &b, bool (*areAlike)(const Value &, const Value &)) {
  std::size_t lists = 0, others = 0;
  Store::forEachDifference(a.store, b.store, [&](RootId, const Value &left, const Value &right) {
    if (left && right) // what only one of them made is in the list
      ++(areAlike(left, right) ? lists : others);
  });
  return lists == 1 && others == 0 && a.currentDevice == b.currentDevice && a.moves.size() == b.moves.size();
}

} // namespace

void mergeLeftOut(std::vector<Row> &rows, bool isComprehension, Term phi) {
  const auto areAlike = isComprehension ? areListsOneHoldsAll : areListsOfIterations;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size();)
      if (differInOneList(rows[i], rows[j], areAlike)) {
        rows[i] = joinRows(rows[i], rows[j], phi);
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(j));
      } else {
        ++j;
      }
}

} // namespace devicetidy
