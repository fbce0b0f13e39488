#include "analyzer/report/Site.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <unordered_map>

namespace devicetidy {
namespace {

constexpr std::string_view tensorType = "at::Tensor";

bool sameRange(const Location &a, const Location &b) {
  return a == b && a.endLine == b.endLine && a.endColumn == b.endColumn;
}

bool before(const Location &a, const Location &b) {
  return std::tie(a.file, a.line, a.column, a.endLine, a.endColumn) <
         std::tie(b.file, b.line, b.column, b.endLine, b.endColumn);
}

struct PlaceHash {
  std::size_t operator()(const Location &where) const {
    return where.file.hash() ^ (std::size_t(where.line) << 32 | std::size_t(where.column) << 1);
  }
};

/// A function with a fact at the place of a finding or of its fix.
struct Holder {
  const Function *function;
  const Fact *fact;
};

/// Lines in which a fix of `finding` would look for tensors.
std::pair<std::uint32_t, std::uint32_t> linesOf(const Finding &finding) {
  std::uint32_t first = finding.where.line, last = std::max(finding.where.line, finding.where.endLine);
  for (const PlacedOperand &operand : finding.operands)
    if (operand.where.valid() && operand.where.file == finding.where.file) {
      first = std::min(first, operand.where.line);
      last = std::max(last, operand.where.endLine);
    }
  return {first, last};
}

/// Expressions of `function` on the lines of `finding` that are tensors, sorted.
std::vector<Location> tensorsOf(const Function &function, const Finding &finding) {
  const auto [first, last] = linesOf(finding);
  std::vector<Location> result;
  for (const Block &block : function.blocks)
    for (const Fact &fact : block.facts)
      for (const Operand &operand : fact.operands)
        if (operand.type.view() == tensorType && operand.where.file == finding.where.file &&
            operand.where.line >= first && operand.where.line <= last)
          result.push_back(operand.where);
  std::sort(result.begin(), result.end(), before);
  result.erase(std::unique(result.begin(), result.end(), sameRange), result.end());
  return result;
}

void describeHolders(Finding &finding, const std::vector<Holder> &holders, const Program &program) {
  Site &site = finding.site;
  const Function &function = *holders.front().function;
  site.function = function.name.str();
  site.isLambda = function.isLambda;
  site.isConst = function.isConst;
  site.locals = function.locals;
  site.tensors = tensorsOf(function, finding);
  if (const Type *type = program.type(function.className))
    for (const Field &field : type->fields)
      site.members.insert(field.name.str());
  for (const Holder &holder : holders) {
    site.inMacro |= holder.fact->inMacro;
    if (holder.function == &function)
      continue;
    site.isTemplate = true;
    const std::vector<Location> here = tensorsOf(*holder.function, finding);
    std::vector<Location> both;
    std::set_intersection(site.tensors.begin(), site.tensors.end(), here.begin(), here.end(),
                          std::back_inserter(both), before);
    site.tensors = std::move(both);
  }
  for (const Holder &holder : holders)
    if (holder.fact->hasObject && !holder.fact->operands.empty()) {
      const Operand &object = holder.fact->operands[0];
      site.receiverIsTensor =
          object.type.view() == tensorType && (!site.receiver.valid() || site.receiverIsTensor);
      site.receiver = object.where;
    }
}

/// Fills in what only findings about members have, wherever they stand.
void describeMember(Finding &finding, const Program &program) {
  const auto className = finding.fields.find("class"), member = finding.fields.find("member");
  if (className == finding.fields.end() || member == finding.fields.end())
    return;
  if (finding.site.function.empty())
    finding.site.function = className->second;
  const Type *type = program.type(className->second);
  if (!type)
    return;
  for (const Field &field : type->fields)
    if (field.name.str() == member->second)
      finding.site.memberIsTensor = field.type.view() == tensorType;
}

} // namespace

void locate(std::vector<Finding> &findings, std::size_t first, const Program &program) {
  std::unordered_map<Location, std::vector<Holder>, PlaceHash> holders;
  for (std::size_t i = first; i < findings.size(); ++i)
    for (const Location &where : {findings[i].where, findings[i].fixAt})
      holders[where];
  if (holders.empty())
    return;
  for (Name id : program.order) { // a stable order: the first instantiation is the same in every run
    const Function &function = *program.function(id);
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts)
        if (fact.kind == FactKind::Call || fact.kind == FactKind::Construct)
          if (const auto place = holders.find(fact.where); place != holders.end())
            place->second.push_back({&function, &fact});
  }
  for (std::size_t i = first; i < findings.size(); ++i) {
    if (const auto &found = holders[findings[i].where]; !found.empty())
      describeHolders(findings[i], found, program);
    for (const Holder &holder : holders[findings[i].fixAt])
      findings[i].site.inMacro |= holder.fact->inMacro;
    describeMember(findings[i], program);
  }
}

} // namespace devicetidy
