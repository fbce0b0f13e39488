#include "analyzer/report/finding/Site.h"

#include "analyzer/report/finding/FactWalk.h"

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

/// What the calls at the place of the finding say about the object they are made on.
void describeReceiver(Site &site, const std::vector<FactPlace> &places) {
  for (const FactPlace &place : places) {
    const Fact &fact = place.fact();
    if (!fact.hasObject || fact.operands.empty())
      continue;
    const bool isFirst = !site.receiver.valid();
    const Operand &object = fact.operands[0];
    site.receiver = object.where;
    site.receiverIsTensor = object.type.view() == tensorType && (isFirst || site.receiverIsTensor);
    site.isAssignable = fact.isObjectAssignable && (isFirst || site.isAssignable);
    site.isPointee |= fact.isObjectPointee;
    site.isForgotten |= isForgotten(place);
    if (const std::optional<OwningModule> module = owningModule(place))
      site.module = module->text.str() + (module->isPointer ? "->" : ".");
  }
}

void describePlaces(Finding &finding, const std::vector<FactPlace> &places, const Program &program) {
  Site &site = finding.site;
  const Function &function = *places.front().function;
  site.function = function.name.str();
  site.isLambda = function.isLambda;
  site.locals = function.locals;
  site.tensors = tensorsOf(function, finding);
  if (const Type *type = program.type(function.className))
    for (const Field &field : type->fields)
      site.members.insert(field.name.str());
  for (const FactPlace &place : places) {
    if (place.function == &function)
      continue;
    site.isTemplate = true;
    const std::vector<Location> here = tensorsOf(*place.function, finding);
    std::vector<Location> both;
    std::set_intersection(site.tensors.begin(), site.tensors.end(), here.begin(), here.end(),
                          std::back_inserter(both), before);
    site.tensors = std::move(both);
  }
  describeReceiver(site, places);
}

bool derivesFrom(const Program &program, Name className, std::string_view base) {
  const Type *type = program.type(className);
  return type && (type->templateName.view() == base ||
                  std::any_of(type->bases.begin(), type->bases.end(),
                              [&](Name each) { return derivesFrom(program, each, base); }));
}

/// Does the function run once for each object? Besides constructors that is the reset() that Cloneable calls:
/// it forgets what was registered before.
bool runsOnce(const Program &program, const Function &function) {
  static constexpr std::string_view reset = "::reset";
  const std::string_view name = function.name.view();
  const bool isReset = name.size() > reset.size() && name.substr(name.size() - reset.size()) == reset &&
                       function.paramCount == 0;
  return function.isConstructor ||
         (isReset && derivesFrom(program, function.className, "torch::nn::Cloneable"));
}

bool encloses(const Location &range, const Location &part) {
  return range.file == part.file && std::tie(range.line, range.column) <= std::tie(part.line, part.column) &&
         std::tie(part.endLine, part.endColumn) <= std::tie(range.endLine, range.endColumn);
}

/// Does the function say the name of `member` as a string, as code does that registers it?
bool saysName(const Function &function, Name member) {
  for (const Block &block : function.blocks)
    for (const Fact &fact : block.facts)
      if (fact.kind == FactKind::Literal && fact.literal == LiteralKind::String && fact.name == member)
        return true;
  return false;
}

/// The expression at `made` that gives `member` its value, as Site::memberValue wants it.
Location valueAt(const FactPlace &made, const Location &where, Name className, const Field &member,
                 const Program &program) {
  const Function &function = *made.function;
  if (function.className != className || !runsOnce(program, function) || isInLoop(made) ||
      saysName(function, member.name))
    return {};
  const std::vector<const Operand *> values = valuesOf(program, function, member.name.view());
  const bool isOnly = values.size() == 1 && values[0]->type == member.type;
  return isOnly && encloses(values[0]->where, where) ? values[0]->where : Location();
}

/// Fills in what only findings about members have, wherever they stand.
void describeMember(Finding &finding, const std::vector<FactPlace> &made, const Program &program) {
  const auto className = finding.fields.find("class"), member = finding.fields.find("member");
  if (className == finding.fields.end() || member == finding.fields.end())
    return;
  Site &site = finding.site;
  if (site.function.empty())
    site.function = className->second;
  const Type *type = program.type(className->second);
  if (!type)
    return;
  for (const Field &field : type->fields) {
    if (field.name.str() != member->second)
      continue;
    site.memberIsTensor = field.type.view() == tensorType;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Location value = valueAt(made[i], finding.fixAt, type->id, field, program);
      site.memberValue = i == 0 || sameRange(value, site.memberValue) ? value : Location();
      if (!site.memberValue.valid())
        break;
    }
  }
}

bool isInMacro(const std::vector<FactPlace> &places) {
  return std::any_of(places.begin(), places.end(), [](const FactPlace &place) {
    return place.fact().inMacro || place.fact().inMacroArgument;
  });
}

using Places = std::unordered_map<Location, std::vector<FactPlace>, PlaceHash>;

/// Finds the calls at the places that are keys of `places`.
void findFacts(Places &places, const Program &program) {
  for (Name id : program.order) { // a stable order: the first instantiation is the same in every run
    const Function &function = *program.function(id);
    for (std::size_t b = 0; b < function.blocks.size(); ++b)
      for (std::size_t i = 0; i < function.blocks[b].facts.size(); ++i) {
        const Fact &fact = function.blocks[b].facts[i];
        if (fact.where.valid() && (fact.kind == FactKind::Call || fact.kind == FactKind::Construct))
          if (const auto place = places.find(fact.where); place != places.end())
            place->second.push_back({&function, static_cast<BlockId>(b), i});
      }
  }
}

} // namespace

void locate(std::vector<Finding> &findings, std::size_t first, const Program &program) {
  Places places;
  for (std::size_t i = first; i < findings.size(); ++i) {
    places[findings[i].where];
    places[findings[i].fixAt];
    for (const PlacedOperand &operand : findings[i].operands)
      for (const Step &step : operand.witness)
        places[step.where];
  }
  if (places.empty())
    return;
  findFacts(places, program);
  for (std::size_t i = first; i < findings.size(); ++i) {
    Finding &finding = findings[i];
    const std::vector<FactPlace> &made = places[finding.fixAt];
    if (const auto &found = places[finding.where]; !found.empty())
      describePlaces(finding, found, program);
    // A member is repaired where it is made, whatever the operation stands in.
    finding.site.inMacro =
        isInMacro(made) || (!finding.fields.count("member") && isInMacro(places[finding.where]));
    for (const PlacedOperand &operand : finding.operands)
      for (const Step &step : operand.witness)
        finding.site.isMadeInMacro |= isInMacro(places[step.where]);
    describeMember(finding, made, program);
  }
}

} // namespace devicetidy
