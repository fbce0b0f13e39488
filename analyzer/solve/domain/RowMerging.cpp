//===- RowMerging.cpp - which ways are made one when there are too many ---===//
#include "analyzer/solve/domain/Comparisons.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/Row.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace devicetidy {
namespace {

// Merges rows with equal keys in place, into the first of each, the last rows first, until there are
// `enough`.
template <typename KeyOf>
void mergeEqual(std::vector<Row> &rows, KeyOf keyOf, Term phi, std::size_t enough = 1) {
  std::vector<std::uint64_t> keys;
  keys.reserve(rows.size());
  for (const Row &row : rows)
    keys.push_back(keyOf(row));
  for (std::size_t i = rows.size(); i-- > 1 && rows.size() > enough;) {
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

std::vector<Condition> sortedConditions(const Row &row) {
  std::vector<Condition> sorted = row.known;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// How many conditions of the one are otherwise in the other? Both are sorted.
std::size_t countDenied(const std::vector<Condition> &ones, const std::vector<Condition> &others) {
  std::size_t count = 0;
  for (auto one = ones.begin(), other = others.begin(); one != ones.end() && other != others.end();) {
    count += one->first == other->first && one->second != other->second;
    ++(one->first < other->first || (one->first == other->first && one->second < other->second) ? one
                                                                                                : other);
  }
  return count;
}

// What a join forgets: where there is a GPU, of which there is something to tell; what is on GPUs or may be,
// and what is called; what is on the CPU; conditions of one row that do not hold in the other.
struct Loss {
  std::size_t ways = 0, places = 0, onCpu = 0, conditions = 0;
  bool operator<(const Loss &other) const {
    return std::tie(ways, places, onCpu, conditions) <
           std::tie(other.ways, other.places, other.onCpu, other.conditions);
  }
};

// What one row has in one place: rows with the same `value` there are alike.
struct Cell {
  std::uint64_t value = 0;
  std::size_t onGpus = 0, called = 0, onCpu = 0;
};

void addAll(Cell &cell, const Value &value) {
  if ((is(value, ValueKind::Tensor) && !value->address.valid()) || is(value, ValueKind::Device))
    ++(value->placement.kind == PlacementKind::Cpu ? cell.onCpu : cell.onGpus);
  else if (is(value, ValueKind::Address) || is(value, ValueKind::Function))
    ++cell.called;
  for (const auto &[name, field] : value->fields)
    addAll(cell, field);
  for (const auto *part : {&value->elements, &value->summary})
    for (const Value &element : *part)
      addAll(cell, element);
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
    for (const auto &[division, column] : byDivision)
      all.push_back(column);
    return all;
  }

private:
  template <typename ValueOf> void addOf(const std::vector<Row> &rows, ValueOf valueOf) {
    std::vector<Value> values;
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
    std::map<std::uint64_t, Cell> cells; // of each value
    std::vector<std::uint64_t> division;
    Column column;
    for (const Value &value : values) {
      const auto [cell, isNew] = cells.try_emplace(value ? value->placeHash : 0);
      if (isNew && value)
        addAll(cell->second, value);
      if (isNew)
        cell->second.value = cells.size();
      division.push_back(cell->second.value);
      column.push_back(cell->second);
    }
    Column &whole = byDivision.try_emplace(std::move(division), values.size()).first->second;
    for (std::size_t i = 0; i < column.size(); ++i) {
      whole[i].value = column[i].value;
      whole[i].onGpus += column[i].onGpus;
      whole[i].called += column[i].called;
      whole[i].onCpu += column[i].onCpu;
    }
  }

  std::map<std::vector<std::uint64_t>, Column> byDivision;
};

// Joins the two rows that lose least, into the first; of several such pairs the last.
class Merging {
public:
  Merging(std::vector<Row> &rows, Term phi)
      : rows(rows), phi(phi), columns(Differences(rows).columns()), isThere(rows.size(), true),
        nearest(rows.size()), losses(rows.size()) {
    for (const Row &row : rows)
      conditions.push_back(sortedConditions(row));
    for (std::size_t i = 1; i < rows.size(); ++i)
      weigh(i);
  }

  void joinTwo() {
    std::size_t second = 0;
    for (std::size_t i = 1; i < rows.size(); ++i)
      if (hasNearest(i) && (second == 0 || !(leastOf(second) < leastOf(i))))
        second = i;
    const std::size_t first = nearest[second];
    rows[first] = joinRows(rows[first], rows[second], phi, /*keepsObjects=*/false);
    conditions[first] = sortedConditions(rows[first]);
    isThere[second] = false;
    for (Column &column : columns)
      if (column[first].value != column[second].value)
        column[first] = {++joined}; // where nothing more can be lost
    weigh(first);
    for (std::size_t i = first + 1; i < rows.size(); ++i)
      if (isThere[i]) {
        losses[i][first] = lossOf(i, first);
        if (nearest[i] == first || nearest[i] == second)
          findNearest(i);
        else if (losses[i][first] < leastOf(i))
          nearest[i] = first;
      }
  }

  /// Takes away the rows that have been joined into others.
  void finish() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (isThere[i] && kept++ != i)
        rows[kept - 1] = std::move(rows[i]);
    rows.resize(kept);
  }

private:
  Loss lossOf(std::size_t i, std::size_t j) const {
    Loss loss;
    for (const Column &column : columns) {
      const Cell &a = column[i], &b = column[j];
      loss.ways |= a.onGpus + b.onGpus != 0;
      if (a.value == b.value)
        continue;
      loss.places += a.onGpus + b.onGpus + a.called + b.called;
      loss.onCpu += a.onCpu + b.onCpu;
    }
    loss.conditions = countDenied(conditions[i], conditions[j]);
    return loss;
  }

  bool hasNearest(std::size_t i) const { return isThere[i] && nearest[i] < i; }
  const Loss &leastOf(std::size_t i) const { return losses[i][nearest[i]]; }

  void weigh(std::size_t i) {
    losses[i].assign(i, {});
    for (std::size_t j = 0; j < i; ++j)
      if (isThere[j])
        losses[i][j] = lossOf(i, j);
    findNearest(i);
  }

  void findNearest(std::size_t i) {
    nearest[i] = i;
    for (std::size_t j = 0; j < i; ++j)
      if (isThere[j] && (nearest[i] == i || !(leastOf(i) < losses[i][j])))
        nearest[i] = j;
  }

  std::vector<Row> &rows;
  const Term phi;
  std::vector<Column> columns;
  std::vector<std::vector<Condition>> conditions; ///< of each row, sorted
  std::vector<bool> isThere;
  std::vector<std::size_t> nearest; ///< of each row: which before it loses least; itself where there is none
  std::vector<std::vector<Loss>> losses; ///< of each row with those before it
  std::uint64_t joined = 1U << 20U;      ///< values that no row had before
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
  if (rows.size() <= cap)
    return 0;
  const std::size_t joins = rows.size() - cap;
  Merging merging(rows, phi);
  for (std::size_t i = 0; i < joins; ++i)
    merging.joinTwo();
  merging.finish();
  return joins;
}

namespace {

bool differInLeftOut(const Row &a, const Row &b) {
  std::size_t lists = 0, others = 0;
  Store::forEachDifference(a.store, b.store, [&](RootId, const Value &left, const Value &right) {
    const bool areLists =
        left && right && is(left, ValueKind::List) && is(right, ValueKind::List) &&
        (isSummary(left) || isSummary(right) || left->elements.size() != right->elements.size());
    ++(areLists && (holdsAll(left, right) || holdsAll(right, left)) ? lists : others);
  });
  return lists == 1 && others == 0 && a.currentDevice == b.currentDevice && a.moves.size() == b.moves.size();
}

} // namespace

void mergeLeftOut(std::vector<Row> &rows, Term phi) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size();)
      if (differInLeftOut(rows[i], rows[j])) {
        rows[i] = joinRows(rows[i], rows[j], phi);
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(j));
      } else {
        ++j;
      }
}

} // namespace devicetidy
