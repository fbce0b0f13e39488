// Joins are upper bounds: what a join claims to know is true of both.
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/Row.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>
#include <set>

namespace devicetidy::test {
namespace {

using Random = std::mt19937_64;

std::size_t pick(Random &random, std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

Placement randomPlacement(Random &random) {
  switch (pick(random, 6)) {
  case 0:
    return Placement::cpu();
  case 1:
    return Placement::cuda(intTerm(0));
  case 2:
    return Placement::cuda(intTerm(1));
  case 3:
    return Placement::cuda(symbolTerm("n"));
  case 4:
    return Placement::symbol(SymbolRole::DeviceChoice, symbolTerm("device"), "device");
  default:
    return Placement::unknown();
  }
}

Value randomValue(Random &random, int depth) {
  switch (pick(random, depth > 0 ? 9 : 6)) {
  case 0:
  case 1:
    return tensorValue(randomPlacement(random),
                       std::vector<int>{0, 1, 2, someRank, unknownRank}[pick(random, 5)], nullptr);
  case 2:
    return scalarValue(intTerm(static_cast<std::int64_t>(pick(random, 3))));
  case 3:
    return deviceValue(randomPlacement(random));
  case 4:
    return nullValue();
  case 5:
    return addressValue({static_cast<RootId>(1 + pick(random, 3)), nullptr});
  case 6:
  case 7: {
    std::map<Name, Value> fields;
    for (const char *name : {"a", "b", "c"})
      if (pick(random, 3))
        fields[name] = randomValue(random, depth - 1);
    return recordValue("R", std::move(fields));
  }
  default: {
    std::vector<Value> elements;
    for (std::size_t i = pick(random, 4); i > 0; --i)
      elements.push_back(randomValue(random, depth - 1));
    return listValue("L", std::move(elements));
  }
  }
}

bool coversRank(int joined, int rank) {
  return joined == rank || joined == unknownRank || (joined == someRank && rank != 0 && rank != unknownRank);
}

/// Is everything that `joined` says true of `value`?
bool covers(const Value &joined, const Value &value) {
  if (is(joined, ValueKind::Unknown) || same(joined, value))
    return true;
  if (joined->kind != value->kind)
    return false;
  switch (joined->kind) {
  case ValueKind::Scalar:
    return applies(joined->term, "phi");
  case ValueKind::Tensor:
    return (!joined->placement.isKnown() || joined->placement == value->placement) &&
           coversRank(joined->rank, value->rank);
  case ValueKind::Record:
    return std::all_of(joined->fields.begin(), joined->fields.end(), [&](const auto &entry) {
      auto field = value->fields.find(entry.first);
      return field == value->fields.end() ? is(entry.second, ValueKind::Unknown)
                                          : covers(entry.second, field->second);
    });
  case ValueKind::List:
    if (!isSummary(joined)) {
      if (joined->elements.size() != value->elements.size())
        return false;
      for (std::size_t i = 0; i < value->elements.size(); ++i)
        if (!covers(joined->elements[i], value->elements[i]))
          return false;
      return true;
    }
    for (const auto *elements : {&value->elements, &value->summary})
      for (const Value &element : *elements)
        if (std::none_of(joined->summary.begin(), joined->summary.end(),
                         [&](const Value &alternative) { return covers(alternative, element); }))
          return false;
    return true;
  default:
    return false;
  }
}

constexpr RootId roots = 12;

Row randomRow(Random &random, const Row *near) {
  Row row;
  if (near)
    row.store = near->store;
  for (RootId root = 1; root <= roots; ++root)
    if (!near || pick(random, 3) == 0)
      row.store.set(root, pick(random, 8) ? randomValue(random, 2) : nullptr);
  for (std::size_t i = pick(random, 4); i > 0; --i)
    row.registers.push_back(pick(random, 4) ? randomValue(random, 1) : nullptr);
  for (const char *condition : {"c", "d", "e"})
    if (pick(random, 2))
      row.assume(symbolTerm(condition), static_cast<std::int64_t>(pick(random, 2)));
  if (pick(random, 3) == 0)
    row.currentDevice = intTerm(static_cast<std::int64_t>(pick(random, 2)));
  return row;
}

bool covers(const Row &joined, const Row &row) {
  for (RootId root = 1; root <= roots; ++root)
    if (const Value value = joined.store.get(root))
      if (!row.store.get(root) || !covers(value, row.store.get(root)))
        return false;
  for (std::size_t i = 0; i < joined.registers.size(); ++i)
    if (joined.registers[i] &&
        (i >= row.registers.size() || !row.registers[i] || !covers(joined.registers[i], row.registers[i])))
      return false;
  for (const auto &known : joined.known)
    if (std::find(row.known.begin(), row.known.end(), known) == row.known.end())
      return false;
  return joined.currentDevice == row.currentDevice || applies(joined.currentDevice, "phi");
}

TEST(Join, OfValuesIsAnUpperBound) {
  Random random(21);
  int known = 0;
  for (int i = 0; i < 20000; ++i) {
    const Value a = randomValue(random, 3), b = randomValue(random, 3);
    const Value joined = joinValues(a, b, symbolTerm("here"));
    ASSERT_TRUE(covers(joined, a)) << i;
    ASSERT_TRUE(covers(joined, b)) << i;
    known += !is(joined, ValueKind::Unknown);
  }
  EXPECT_GT(known, 1000);
}

TEST(Join, OfAValueWithItselfIsTheValue) {
  Random random(22);
  for (int i = 0; i < 2000; ++i) {
    const Value value = randomValue(random, 3);
    EXPECT_TRUE(same(joinValues(value, value, symbolTerm("here")), value));
  }
}

TEST(Join, KeepsWhatBothShare) {
  const Value a = tensorValue(Placement::cpu(), 2, nullptr), b = tensorValue(Placement::cpu(), 3, nullptr);
  const Value joined = joinValues(a, b, symbolTerm("here"));
  EXPECT_EQ(joined->placement, Placement::cpu());
  EXPECT_EQ(joined->rank, someRank);
}

TEST(Join, OfRowsIsAnUpperBound) {
  Random random(23);
  for (int i = 0; i < 5000; ++i) {
    const Row a = randomRow(random, nullptr);
    const Row b = randomRow(random, pick(random, 2) ? &a : nullptr);
    const Row joined = joinRows(a, b, symbolTerm("here"));
    ASSERT_TRUE(covers(joined, a)) << i;
    ASSERT_TRUE(covers(joined, b)) << i;
  }
}

TEST(Join, KeepsAnObjectOfOneWayWhereAListMayHoldIt) {
  const RootId list = makeRoot(RootKind::Heap, 1), held = makeRoot(RootKind::Heap, 2),
               lost = makeRoot(RootKind::Heap, 3);
  const Value object = recordValue("Penalty", {{"prior", tensorValue(Placement::cpu(), 1, nullptr)}});
  Row without, with;
  without.store.set(list, listValue({}, {}));
  with.store.set(list, listValue({}, {addressValue({held, nullptr})}));
  with.store.set(held, object);
  with.store.set(lost, object); // nothing leads to it
  for (const Row &joined :
       {joinRows(with, without, symbolTerm("here")), joinRows(without, with, symbolTerm("here"))}) {
    ASSERT_TRUE(joined.store.get(held));
    EXPECT_TRUE(same(joined.store.get(held), object));
    EXPECT_FALSE(joined.store.get(lost));
  }
}

TEST(Join, MergedRowsCoverAllRows) {
  Random random(24);
  for (int i = 0; i < 500; ++i) {
    std::vector<Row> rows{randomRow(random, nullptr)};
    for (std::size_t count = 1 + pick(random, 9); count > 0; --count)
      rows.push_back(randomRow(random, pick(random, 2) ? &rows.front() : nullptr));
    std::vector<Row> merged = rows;
    EXPECT_EQ(mergeRows(merged, 3, rows.size(), symbolTerm("here")), 0u);
    for (const Row &row : rows)
      EXPECT_TRUE(
          std::any_of(merged.begin(), merged.end(), [&](const Row &one) { return covers(one, row); }));
  }
}

// use_gpu and self.use_gpu: a branch on one decides the other.
TEST(Join, NumbersThatAreEqualInBothStayEqual) {
  const RootId one = makeRoot(RootKind::Heap, 1), two = makeRoot(RootKind::Heap, 2),
               other = makeRoot(RootKind::Heap, 3);
  const auto number = [](std::int64_t value) { return scalarValue(intTerm(value)); };
  Row a, b;
  for (RootId root : {one, two}) {
    a.store.set(root, number(1));
    b.store.set(root, scalarValue(symbolTerm("asked")));
  }
  a.store.set(other, number(2));
  b.store.set(other, number(3));
  const Row joined = joinRows(a, b, symbolTerm("here"));
  EXPECT_TRUE(same(joined.store.get(one), joined.store.get(two)));
  EXPECT_FALSE(same(joined.store.get(one), joined.store.get(other)));
}

// What rests on a bound leads to no finding: it makes way for what may.
TEST(Join, RowsThatRestOnABoundMakeWay) {
  std::vector<Row> rows(3);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].store.set(
        makeRoot(RootKind::Heap, 1),
        tensorValue(i == 0 ? Placement::cpu() : Placement::cuda(intTerm(std::int64_t(i))), 1, nullptr));
  EXPECT_TRUE(rows[0].assume(bounded({symbolTerm("flag")}), 1));
  EXPECT_TRUE(isBounded(rows[0]));
  mergeRows(rows, 2, 6, symbolTerm("here"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(isBounded(rows[0]) || isBounded(rows[1]));
}

// Of more rows than there is room for, those with a GPU stay, and come first.
TEST(Join, RowsWithAGpuAreKeptFirst) {
  const Term agent = symbolTerm("agent"), buffer = symbolTerm("buffer"), onGpu = symbolTerm("on GPU");
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < 40; ++i) {
    Row row;
    row.assume(agent, i % 5);
    row.assume(buffer, i / 5 % 4);
    row.assume(onGpu, i / 20);
    row.store.set(makeRoot(RootKind::Heap, 1),
                  tensorValue(i < 20 ? Placement::cpu() : Placement::cuda(intTerm(0)), 1, nullptr));
    row.store.set(makeRoot(RootKind::Heap, 2),
                  tensorValue(Placement::cpu(), int(i % 20), nullptr)); // made of both
    rows.push_back(row);
  }
  EXPECT_EQ(mergeRows(rows, 4, 24, symbolTerm("here")), 16u);
  ASSERT_EQ(rows.size(), 24u);
  std::set<std::pair<Term, Term>> shown;
  for (const Row &row : rows)
    shown.emplace(row.resolve(agent), row.resolve(buffer));
  EXPECT_EQ(shown.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(rows[i].resolve(onGpu), intTerm(1));
}

TEST(Join, RowsThatAreKeptShowEachTwoConditions) {
  const std::vector<Term> asked = {symbolTerm("agent"), symbolTerm("buffer"), symbolTerm("scaled")};
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < 40; ++i) {
    Row row;
    row.assume(asked[0], i % 5);
    row.assume(asked[1], i / 5 % 4);
    row.assume(asked[2], i / 20);
    row.store.set(makeRoot(RootKind::Heap, 1), tensorValue(Placement::cuda(intTerm(i)), 1, nullptr));
    rows.push_back(row);
  }
  mergeRows(rows, 4, 24, symbolTerm("here"));
  const auto pairsOf = [&](std::size_t a, std::size_t b) {
    std::set<std::pair<Term, Term>> pairs;
    for (const Row &row : rows)
      pairs.emplace(row.resolve(asked[a]), row.resolve(asked[b]));
    return pairs.size();
  };
  EXPECT_EQ(pairsOf(0, 1), 20u);
  EXPECT_EQ(pairsOf(0, 2), 10u);
  EXPECT_EQ(pairsOf(1, 2), 8u);
}

TEST(Join, EqualRowsMergeAndKeepSharedConditions) {
  Row a, b;
  a.assume(symbolTerm("c"), 1);
  a.assume(symbolTerm("d"), 1);
  b.assume(symbolTerm("c"), 1);
  b.assume(symbolTerm("d"), 0);
  std::vector<Row> rows{a, b};
  EXPECT_EQ(mergeRows(rows, 4, 12, symbolTerm("here")), 0u);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].resolve(symbolTerm("c")), intTerm(1));
  EXPECT_EQ(rows[0].resolve(symbolTerm("d")), symbolTerm("d"));
}

} // namespace
} // namespace devicetidy::test
