// The table of verdicts: one test for each cell, and the page that shows it to people.
#include "analyzer/solve/domain/Placement.h"
#include "analyzer/solve/domain/TermOps.h"
#include "test/unit/solve/FactsHarness.h"
#include "test/unit/solve/MarkdownTable.h"

#include "gtest/gtest.h"

#include <fstream>
#include <map>
#include <sstream>

namespace devicetidy::test {
namespace {

// The same as in docs/verdicts.md.
const std::string page = R"(
## Devices

| | cpu | CUDA | chosen GPU | found on CUDA | other accelerator | meta | device choice | tensor from outside | module from outside | saved | unknown |
|---|---|---|---|---|---|---|---|---|---|---|---|
| cpu | same | definite | definite | definite | definite | definite | likely | latent | latent | silent | silent |
| CUDA | definite | next table | next table | next table | silent | definite | likely | latent | latent | likely | silent |
| chosen GPU | definite | next table | next table | next table | silent | definite | latent | latent | latent | likely | silent |
| found on CUDA | definite | next table | next table | next table | silent | definite | open | same / open | open | open | silent |
| other accelerator | definite | silent | silent | silent | same / silent | definite | likely | latent | latent | likely | silent |
| meta | definite | definite | definite | definite | definite | same | likely | latent | latent | likely | silent |
| device choice | likely | likely | latent | open | likely | likely | same / open | open | open | likely | silent |
| tensor from outside | latent | latent | latent | same / open | latent | latent | open | same / open | open | open | silent |
| module from outside | latent | latent | latent | open | latent | latent | open | open | same / open | open | silent |
| saved | silent | likely | likely | open | likely | likely | likely | open | open | same / open | silent |
| unknown | silent | silent | silent | silent | silent | silent | silent | silent | silent | silent | silent |

## CUDA indices

| | 0 | above 0 | current | index of a tensor | argument | iteration | previous iteration | end of list | rank |
|---|---|---|---|---|---|---|---|---|---|
| 0 | same | definite | silent | latent | latent | likely | likely | likely | likely |
| above 0 | definite | same / definite | likely | latent | latent | latent | latent | latent | likely |
| current | silent | likely | same | silent | likely | likely | likely | likely | likely |
| index of a tensor | latent | latent | silent | same / open | latent | latent | latent | latent | latent |
| argument | latent | latent | likely | latent | same / latent | latent | latent | latent | latent |
| iteration | likely | latent | likely | latent | latent | same / latent | likely | latent | likely |
| previous iteration | likely | latent | likely | latent | latent | likely | same / latent | latent | likely |
| end of list | likely | latent | likely | latent | latent | latent | latent | same / latent | likely |
| rank | likely | likely | likely | latent | latent | likely | likely | likely | same / latent |

## Open current device

| | 0 | above 0 | current | index of a tensor | argument | iteration | previous iteration | end of list | rank |
|---|---|---|---|---|---|---|---|---|---|
| current | silent | silent | same | silent | silent | silent | silent | silent | silent |

## Tensors of dimension 0

| | 0-dim | at least 1-dim | unknown |
|---|---|---|---|
| strict operation | verdict | verdict | verdict |
| pointwise operation | silent | verdict | at most latent |
| pointwise operation, written tensor | verdict | verdict | verdict |
)";

const char *const headings[] = {"Devices", "CUDA indices", "Open current device", "Tensors of dimension 0"};

Term apply(const char *op, const char *symbol) { return applyTerm(op, {symbolTerm(symbol)}); }

/// CUDA indices of each kind; two where a kind has more than one.
std::vector<Term> indices(const std::string &kind) {
  static const std::map<std::string, std::vector<Term>> all = {
      {"0", {intTerm(0)}},
      {"above 0", {intTerm(1), intTerm(7)}},
      {"current", {currentCudaIndex()}},
      {"index of a tensor", {apply("index of", "x"), apply("index of", "y")}},
      {"argument", {symbolTerm("n"), applyTerm("+", {symbolTerm("n"), intTerm(1)})}},
      {"iteration", {apply("loop", "i"), applyTerm("%", {apply("loop", "j"), symbolTerm("n")})}},
      {"previous iteration",
       {applyTerm("previous", {apply("loop", "i")}), applyTerm("previous", {apply("loop", "j")})}},
      {"end of list", {apply("back", "size"), apply("back", "other size")}},
      {"rank", {apply("rank", "LOCAL_RANK"), applyTerm("%", {apply("rank", "RANK"), intTerm(4)})}}};
  return all.at(kind);
}

/// Placements of each kind of device. CUDA devices stand for all kinds of indices.
std::vector<Placement> placements(const std::string &kind) {
  auto symbol = [](SymbolRole role, const char *name) {
    return Placement::symbol(role, symbolTerm(name), name);
  };
  if (kind == "cpu")
    return {Placement::cpu()};
  if (kind == "other accelerator")
    return {Placement::other("mps"), Placement::other("xpu")};
  if (kind == "meta")
    return {Placement::other("meta")};
  if (kind == "device choice")
    return {symbol(SymbolRole::DeviceChoice, "device"), symbol(SymbolRole::DeviceChoice, "config.device")};
  if (kind == "tensor from outside")
    return {symbol(SymbolRole::Tensor, "x"), symbol(SymbolRole::Tensor, "y")};
  if (kind == "module from outside")
    return {symbol(SymbolRole::Module, "net"), symbol(SymbolRole::Module, "head")};
  if (kind == "saved")
    return {symbol(SymbolRole::Saved, "load"), symbol(SymbolRole::Saved, "other load")};
  if (kind == "unknown")
    return {Placement::unknown()};
  const std::map<std::string, std::string> kindsOf = {{"index of a tensor", "found on CUDA"},
                                                      {"argument", "chosen GPU"}};
  std::vector<Placement> all;
  for (const std::string &index : tableUnder(page, "CUDA indices").columns)
    if (const auto of = kindsOf.find(index); kind == (of == kindsOf.end() ? "CUDA" : of->second))
      for (Term term : indices(index))
        all.push_back(Placement::cuda(term));
  if (all.empty())
    throw std::runtime_error("no kind of device '" + kind + "'");
  return all;
}

std::string wordOf(Verdict verdict) {
  static const char *const words[] = {"same", "silent", "open", "latent", "likely", "definite"};
  return words[static_cast<int>(verdict)];
}

struct Cell {
  std::string row, column, text;
  std::vector<Placement> first, second;
  bool isOpen = false; ///< the current device may be any

  /// The word for a pair: the part after the slash is for two different ones.
  std::string expected(const Placement &a, const Placement &b) const {
    const std::size_t slash = text.find(" / ");
    if (slash == std::string::npos)
      return text;
    return a == b || isFound(a, b) || isFound(b, a) ? text.substr(0, slash) : text.substr(slash + 3);
  }

  /// Is it where the tensor was found?
  static bool isFound(const Placement &gpu, const Placement &tensor) {
    return gpu.kind == PlacementKind::Cuda && tensor.index &&
           gpu.index == applyTerm(op::indexOf, {tensor.index});
  }
};

std::vector<Cell> cellsOf(const std::string &heading) {
  const MarkdownTable table = tableUnder(page, heading);
  auto all = [&](const std::string &kind) {
    if (heading == "Devices")
      return placements(kind);
    std::vector<Placement> result;
    for (Term term : indices(kind))
      result.push_back(Placement::cuda(term));
    return result;
  };
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    for (std::size_t j = 0; j < table.columns.size(); ++j)
      if (table.cells[i][j] != "next table")
        cells.push_back({table.rows[i], table.columns[j], table.cells[i][j], all(table.rows[i]),
                         all(table.columns[j]), heading == "Open current device"});
  return cells;
}

std::vector<Cell> allCells() {
  std::vector<Cell> cells;
  for (const char *heading : {"Devices", "CUDA indices", "Open current device"})
    for (Cell &cell : cellsOf(heading))
      cells.push_back(std::move(cell));
  return cells;
}

std::string testName(const std::string &text) {
  std::string name;
  for (char c : text)
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class VerdictCell : public testing::TestWithParam<Cell> {};

TEST_P(VerdictCell, IsWhatCompareSays) {
  const Cell &cell = GetParam();
  for (const Placement &a : cell.first)
    for (const Placement &b : cell.second) {
      EXPECT_EQ(wordOf(compare(a, b, cell.isOpen)), cell.expected(a, b))
          << a.describe() << " " << b.describe();
      EXPECT_EQ(compare(a, b, cell.isOpen), compare(b, a, cell.isOpen)) << "the order matters";
    }
}

std::string cellName(const testing::TestParamInfo<Cell> &info) {
  return testName(info.param.row + "_meets_" + info.param.column) + (info.param.isOpen ? "_open" : "");
}
INSTANTIATE_TEST_SUITE_P(Table, VerdictCell, testing::ValuesIn(allCells()), cellName);

/// One cell of the table of dimensions.
struct RankCell {
  std::string operation, column, text;
  int rank = unknownRank;
};

std::vector<RankCell> rankCells() {
  const MarkdownTable table = tableUnder(page, "Tensors of dimension 0");
  const std::map<std::string, int> ranks = {
      {"0-dim", 0}, {"at least 1-dim", someRank}, {"unknown", unknownRank}};
  std::vector<RankCell> cells;
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    for (std::size_t j = 0; j < table.columns.size(); ++j)
      cells.push_back({table.rows[i], table.columns[j], table.cells[i][j], ranks.at(table.columns[j])});
  return cells;
}

/// An operation on two tensors; what it records.
std::string recorded(Analysis &analysis, const Machine::Requirement &requirement, Value a, Value b) {
  static const Function function;
  Frame frame{function};
  Fact fact;
  fact.operands.resize(2);
  Row row;
  Call call{analysis.machine, frame, row, fact};
  analysis.solution.conflicts.clear();
  const std::size_t before = analysis.machine.definiteConflicts;
  const Placement common =
      analysis.machine.requireSame(call, {{a, &fact.operands[0]}, {b, &fact.operands[1]}}, requirement);
  if (analysis.solution.conflicts.empty())
    return "none";
  const Level level = analysis.solution.conflicts[0].level;
  EXPECT_EQ(row.failed, level == Level::Definite);
  EXPECT_EQ(analysis.machine.definiteConflicts - before, row.failed ? 1u : 0u);
  EXPECT_EQ(common.isKnown(), level == Level::Latent);
  return level == Level::Definite ? "definite" : level == Level::Likely ? "likely" : "latent";
}

class VerdictRank : public testing::TestWithParam<RankCell> {};

// A tensor on the CPU of the rank of this cell, against every device and every rank of the other tensor.
TEST_P(VerdictRank, IsWhatAnOperationRecords) {
  const RankCell &cell = GetParam();
  Machine::Requirement requirement;
  requirement.cpuScalars = cell.operation != "strict operation";
  requirement.firstIsOutput = cell.operation == "pointwise operation, written tensor";
  Analysis analysis("");
  const Value onCpu = tensorValue(Placement::cpu(), cell.rank, nullptr);
  for (const Cell &pair : cellsOf("Devices"))
    for (const Placement &other : pair.second)
      for (int rank : {0, someRank, unknownRank, 3}) {
        if (pair.row != "cpu")
          continue;
        std::string expected = cell.text == "silent" ? "silent" : pair.expected(Placement::cpu(), other);
        if (expected == "same" || expected == "silent" || expected == "open")
          expected = "none";
        else if (cell.text == "at most latent")
          expected = "latent";
        const Value there = tensorValue(other, rank, nullptr);
        EXPECT_EQ(recorded(analysis, requirement, onCpu, there), expected) << other.describe() << " " << rank;
        if (!requirement.firstIsOutput) {
          EXPECT_EQ(recorded(analysis, requirement, there, onCpu), expected)
              << other.describe() << " " << rank;
        }
      }
}

// May a number on a device that is chosen be on the CPU, and the other on a GPU?
bool mayBeLetOff(const Placement &number, const Placement &other) {
  return number.kind == PlacementKind::Symbol && number.role == SymbolRole::DeviceChoice &&
         other.kind == PlacementKind::Cuda;
}

// No other device than the CPU is let off for its rank, that of a saved number, which was saved there, and
// one that may be the CPU.
TEST_P(VerdictRank, LetsOffNothingButTheCpu) {
  const RankCell &cell = GetParam();
  Machine::Requirement requirement;
  requirement.cpuScalars = cell.operation != "strict operation";
  requirement.firstIsOutput = cell.operation == "pointwise operation, written tensor";
  Analysis analysis("");
  for (const Cell &pair : allCells())
    for (const Placement &a : pair.first)
      for (const Placement &b : pair.second) {
        if (a.kind == PlacementKind::Cpu || b.kind == PlacementKind::Cpu)
          continue;
        analysis.machine.currentDeviceIsOpen = pair.isOpen;
        std::string expected = pair.expected(a, b);
        const bool isNumber = requirement.cpuScalars && cell.rank == 0 &&
                              (isSaved(b) || (isSaved(a) && !requirement.firstIsOutput));
        if (expected == "same" || expected == "silent" || expected == "open" || isNumber)
          expected = "none";
        if (expected == "likely" && requirement.cpuScalars && cell.rank == 0 &&
            (mayBeLetOff(b, a) || (mayBeLetOff(a, b) && !requirement.firstIsOutput)))
          expected = "latent";
        EXPECT_EQ(recorded(analysis, requirement, tensorValue(a, cell.rank, nullptr),
                           tensorValue(b, cell.rank, nullptr)),
                  expected)
            << a.describe() << " " << b.describe();
      }
}

INSTANTIATE_TEST_SUITE_P(Table, VerdictRank, testing::ValuesIn(rankCells()),
                         [](const testing::TestParamInfo<RankCell> &info) {
                           return testName(info.param.operation + "_" + info.param.column);
                         });

TEST(VerdictPage, ShowsTheSameTables) {
  std::ifstream file(DEVICE_TIDY_SOURCE_DIR "/docs/verdicts.md");
  ASSERT_TRUE(file) << "docs/verdicts.md is missing";
  std::ostringstream text;
  text << file.rdbuf();
  for (const char *heading : headings) {
    const MarkdownTable shown = tableUnder(text.str(), heading), tested = tableUnder(page, heading);
    EXPECT_EQ(shown.columns, tested.columns) << heading;
    EXPECT_EQ(shown.rows, tested.rows) << heading;
    ASSERT_EQ(shown.cells.size(), tested.cells.size()) << heading;
    for (std::size_t i = 0; i < shown.cells.size(); ++i)
      EXPECT_EQ(shown.cells[i], tested.cells[i]) << heading << ", row " << shown.rows[i];
  }
}

// How the parts of a sum are ordered depends on names, and these on where a file lies.
TEST(Positions, NextOfOneListAreApartWhateverItsName) {
  for (int i = 0; i < 64; ++i) {
    const Term list = symbolTerm(Name("list " + std::to_string(i)));
    const Term here = applyTerm(op::element, {list, elementIndex()});
    const Term next = applyTerm(op::plus, {here, intTerm(1)});
    EXPECT_TRUE(differentPositions(here, next)) << i;
    EXPECT_FALSE(differentPositions(next, applyTerm(op::plus, {intTerm(1), here}))) << i;
  }
}

TEST(VerdictPage, TablesAreSymmetric) {
  for (const char *heading : {"Devices", "CUDA indices"}) {
    const MarkdownTable table = tableUnder(page, heading);
    EXPECT_EQ(table.rows, table.columns);
    for (std::size_t i = 0; i < table.rows.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_EQ(table.cells[i][j], table.cells[j][i]) << table.rows[i] << ", " << table.columns[j];
  }
}

} // namespace
} // namespace devicetidy::test
