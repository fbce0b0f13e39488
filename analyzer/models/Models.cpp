#include "analyzer/models/Models.h"

#include "analyzer/models/UserModels.h"

#include "ModelTables.inc"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace devicetidy::models {
namespace {

Rule ruleOf(std::string_view word) {
  static const std::map<std::string_view, Rule> rules = {{"strict", Rule::Strict},
                                                         {"iterator", Rule::Iterator},
                                                         {"third", Rule::Third},
                                                         {"same_self", Rule::SameSelf},
                                                         {"index", Rule::Index},
                                                         {"index_put", Rule::IndexPut},
                                                         {"where", Rule::Where},
                                                         {"masked_fill", Rule::MaskedFill},
                                                         {"factory", Rule::Factory},
                                                         {"blob", Rule::Blob},
                                                         {"like", Rule::Like},
                                                         {"move", Rule::Move},
                                                         {"to_cpu", Rule::ToCpu},
                                                         {"to_cuda", Rule::ToCuda},
                                                         {"type_as", Rule::TypeAs},
                                                         {"pin_memory", Rule::PinMemory},
                                                         {"host", Rule::Host},
                                                         {"cpu_lengths", Rule::CpuLengths},
                                                         {"set_data", Rule::SetData},
                                                         {"sequential", Rule::Sequential},
                                                         {"functional", Rule::Functional},
                                                         {"modules", Rule::Modules},
                                                         {"parameters", Rule::Parameters}};
  return rules.at(word);
}

Result resultOf(std::string_view word) {
  static const std::map<std::string_view, Result> results = {
      {"common", Result::Common}, {"self", Result::Self}, {"pieces", Result::Pieces},
      {"cpu", Result::Cpu},       {"none", Result::None}, {"unknown", Result::Unknown}};
  return results.at(word);
}

Rank rankOf(std::string_view word) {
  static const std::map<std::string_view, Rank> ranks = {
      {"yes", Rank::Zero},      {"one", Rank::One},         {"two", Rank::Two},
      {"no", Rank::Some},       {"unknown", Rank::Unknown}, {"keep", Rank::Keep},
      {"more", Rank::More},     {"less", Rank::Less},       {"second", Rank::Second},
      {"same", Rank::Same},     {"common", Rank::Common},   {"size", Rank::Size},
      {"data", Rank::Data},     {"grow", Rank::Grow},       {"reduce", Rank::Reduce},
      {"loss", Rank::Loss},     {"squeeze", Rank::Squeeze}, {"diagonal", Rank::Diagonal},
      {"matmul", Rank::Matmul}, {"einsum", Rank::Einsum},   {"index", Rank::Index}};
  return ranks.at(word);
}

// "2.0" -> 200, "1.13" -> 113; `otherwise` when there is no bound.
int versionNumber(std::string_view text, int otherwise) {
  if (text.empty())
    return otherwise;
  int parts[2] = {0, 0};
  int part = 0;
  for (char c : text)
    if (c == '.')
      ++part;
    else if (part < 2)
      parts[part] = parts[part] * 10 + (c - '0');
  return parts[0] * 100 + parts[1];
}

struct VersionedOp {
  Op op;
  int since, until;
};
using OpTable = std::unordered_map<std::string_view, std::vector<VersionedOp>>;

template <typename Row> Op opOf(std::string_view name, const Row &row) {
  return {name, ruleOf(row.rule), resultOf(row.result), rankOf(row.rank0), row.loss == "yes", false};
}

const Op *find(const OpTable &table, std::string_view name, TorchVersion version) {
  auto found = table.find(name);
  if (found == table.end())
    return nullptr;
  const int wanted = version.major * 100 + version.minor;
  for (const VersionedOp &entry : found->second)
    if (entry.since <= wanted && wanted <= entry.until)
      return &entry.op;
  return nullptr;
}

} // namespace

const Op *atenOp(std::string_view name, TorchVersion version) {
  static const OpTable table = [] {
    OpTable ops;
    for (const auto &row : tables::kAtenOps) {
      Op op = opOf(row.op, row);
      op.isView = row.view == "yes";
      ops[row.op].push_back({op, versionNumber(row.since, 0), versionNumber(row.until, 99999)});
    }
    return ops;
  }();
  return find(table, name, version);
}

const Op *functional(std::string_view name, TorchVersion version) {
  static const OpTable table = [] {
    OpTable ops;
    for (const auto &row : tables::kNnFunctional) {
      ops[row.op].push_back(
          {opOf(row.op, row), versionNumber(row.since, 0), versionNumber(row.until, 99999)});
    }
    return ops;
  }();
  return find(table, name, version);
}

const Module *module(std::string_view className) {
  static const std::map<std::string, Module, std::less<>> table = [] {
    std::map<std::string, Module, std::less<>> modules;
    for (const auto &row : tables::kNnModules)
      modules["torch::nn::" + std::string(row.module) + "Impl"] = {
          opOf(row.module, row), row.params == "yes" || row.params == "one" || row.params == "many",
          row.params == "one", row.params == "many", row.params == "weight"};
    return modules;
  }();
  auto found = table.find(className);
  return found == table.end() ? nullptr : &found->second;
}

namespace {

using RowTable = std::unordered_map<std::string_view, std::vector<const tables::ModelRow *>>;

const RowTable &rowTable() {
  static const RowTable table = [] {
    RowTable rows;
    for (const auto &row : tables::kModels)
      rows[splitRowName(row.name).first].push_back(&row);
    return rows;
  }();
  return table;
}

} // namespace

const std::vector<Row> &rows(std::string_view name) {
  static const std::vector<Row> none;
  if (const UserModels *user = userModels())
    if (const auto found = user->rows.find(std::string(name)); found != user->rows.end())
      return found->second;
  const auto found = rowTable().find(name);
  if (found == rowTable().end())
    return none;
  // Read when they are asked for: a program uses few of them.
  thread_local std::unordered_map<std::string_view, std::vector<Row>> rowsRead;
  const auto [entry, isNew] = rowsRead.try_emplace(found->first);
  if (isNew)
    for (const tables::ModelRow *row : found->second)
      entry->second.push_back(parseRow(row->name, row->model));
  return entry->second;
}

const Effect *effect(const std::vector<Row> &rows, std::string_view word) {
  for (const Row &row : rows)
    for (const Effect &effect : row.effects)
      if (effect.word == word)
        return &effect;
  return nullptr;
}

const Effect *effect(std::string_view name, std::string_view word) { return effect(rows(name), word); }

std::vector<std::string_view> modelledNames() {
  std::vector<std::string_view> names;
  for (const auto &[name, rows] : rowTable())
    names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::set<std::pair<std::string_view, std::string>> tableNames() {
  std::set<std::pair<std::string_view, std::string>> names;
  for (const auto &row : tables::kAtenOps)
    names.emplace("operator", row.op);
  for (const auto &row : tables::kNnFunctional)
    names.emplace("functional", row.op);
  for (const auto &row : tables::kNnModules)
    names.emplace("module", row.module);
  for (const auto &row : tables::kLibraryTypes)
    names.emplace("class", row.type);
  for (std::string_view name : modelledNames())
    names.emplace("effects", name);
  if (const UserModels *user = userModels()) {
    for (const auto &[name, kind] : user->kinds)
      names.emplace("class", name);
    for (const auto &[name, rows] : user->rows)
      names.emplace("effects", name);
  }
  return names;
}

std::string_view typeKind(std::string_view templateName) {
  if (const UserModels *user = userModels())
    if (const auto found = user->kinds.find(std::string(templateName)); found != user->kinds.end())
      return found->second;
  static const std::unordered_map<std::string_view, std::string_view> table = [] {
    std::unordered_map<std::string_view, std::string_view> kinds;
    for (const auto &row : tables::kLibraryTypes)
      kinds.emplace(row.type, row.kind);
    return kinds;
  }();
  auto found = table.find(templateName);
  return found == table.end() ? std::string_view() : found->second;
}

std::vector<std::string_view> typeKinds() {
  std::vector<std::string_view> kinds;
  for (const auto &row : tables::kLibraryTypes)
    kinds.push_back(row.kind);
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

namespace {

using NamesOfRoles = std::unordered_map<std::string_view, std::vector<std::string_view>>;

const std::vector<std::string_view> &namesOf(std::string_view role) {
  static const NamesOfRoles table = [] {
    NamesOfRoles names;
    for (const auto &row : tables::kNames)
      names[row.role].push_back(row.name);
    for (auto &[role, of] : names)
      std::sort(of.begin(), of.end());
    return names;
  }();
  return table.at(role);
}

} // namespace

bool hasRole(std::string_view name, std::string_view role) {
  const std::vector<std::string_view> &names = namesOf(role);
  return std::binary_search(names.begin(), names.end(), name);
}

std::string_view findRole(std::string_view text, std::string_view role) {
  const std::vector<std::string_view> &names = namesOf(role);
  const auto found = std::find_if(names.begin(), names.end(), [&](std::string_view name) {
    return text.find(name) != std::string_view::npos;
  });
  return found == names.end() ? std::string_view() : *found;
}

} // namespace devicetidy::models
