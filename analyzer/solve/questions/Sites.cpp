#include "analyzer/solve/questions/Sites.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Types.h"
#include "analyzer/solve/questions/FactWalk.h"

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

/// The lines of the operation and of its operands.
std::pair<std::uint32_t, std::uint32_t> linesOf(const SiteQuestion &question) {
  const Location &where = question.where;
  std::uint32_t first = where.line, last = std::max(where.line, where.endLine);
  for (const Location &operand : question.operands)
    if (operand.valid() && operand.file == where.file) {
      first = std::min(first, operand.line);
      last = std::max(last, operand.endLine);
    }
  return {first, last};
}

/// Expressions of `function` on the lines of `question` that are tensors, sorted.
std::vector<Location> tensorsOf(const Function &function, const SiteQuestion &question) {
  const auto [first, last] = linesOf(question);
  std::vector<Location> result;
  for (const Block &block : function.blocks)
    for (const Fact &fact : block.facts)
      for (const Operand &operand : fact.operands)
        if (operand.type.view() == tensorType && operand.where.file == question.where.file &&
            operand.where.line >= first && operand.where.line <= last)
          result.push_back(operand.where);
  std::sort(result.begin(), result.end(), before);
  result.erase(std::unique(result.begin(), result.end(), sameRange), result.end());
  return result;
}

/// What the calls at the operation say about the object they are made on.
void describeReceiver(CodeSite &site, const std::vector<FactPlace> &places) {
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

void describePlaces(CodeSite &site, const SiteQuestion &question, const std::vector<FactPlace> &places,
                    const Program &program) {
  const Function &function = *places.front().function;
  site.function = function.name.str();
  site.isLambda = function.isLambda;
  site.locals = function.locals;
  site.tensors = tensorsOf(function, question);
  if (const Type *type = program.type(function.className))
    for (const Field &field : type->fields)
      site.members.emplace(field.name.str(), field.type);
  for (const FactPlace &place : places) {
    if (place.function == &function)
      continue;
    site.isTemplate = true;
    const std::vector<Location> here = tensorsOf(*place.function, question);
    std::vector<Location> both;
    std::set_intersection(site.tensors.begin(), site.tensors.end(), here.begin(), here.end(),
                          std::back_inserter(both), before);
    site.tensors = std::move(both);
  }
  describeReceiver(site, places);
}

/// Does the function run once for each object? Besides constructors that is the reset() that Cloneable calls:
/// it forgets what was registered before.
bool runsOnce(const Program &program, const Function &function) {
  const bool isReset = endsWith(function.name.view(), "::reset") && function.paramCount == 0;
  return function.isConstructor ||
         (isReset && Types(program).derivesFrom(function.className, "torch::nn::Cloneable"));
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

/// The expression at `made` that gives `member` its value, as CodeSite::memberValue wants it.
Location valueAt(const FactPlace &made, const Location &where, Name className, const Field &member,
                 const Program &program) {
  const Function &function = *made.function;
  if (function.className != className || !runsOnce(program, function) || isInLoop(made) ||
      saysName(function, member.name))
    return {};
  const std::vector<OperandPlace> values = valuesOf(program, function, member.name.view());
  const bool isOnly = values.size() == 1 && values[0].operand().type == member.type;
  return isOnly && encloses(values[0].operand().where, where) ? values[0].operand().where : Location();
}

/// Fills in what is asked about a member, wherever the operation is.
void describeMember(CodeSite &site, const SiteQuestion &question, const std::vector<FactPlace> &made,
                    const Program &program) {
  if (site.function.empty())
    site.function = question.className;
  const Type *type = program.type(question.className);
  if (!type)
    return;
  for (const Field &field : type->fields) {
    if (field.name.str() != question.member)
      continue;
    site.memberIsTensor = field.type.view() == tensorType;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Location value = valueAt(made[i], question.fixAt, type->id, field, program);
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

CodeSite siteOf(const SiteQuestion &question, Places &places, const Program &program) {
  CodeSite site;
  const std::vector<FactPlace> &made = places[question.fixAt];
  if (const auto &found = places[question.where]; !found.empty())
    describePlaces(site, question, found, program);
  // A member is repaired where it is made, wherever the operation is.
  site.inMacro = isInMacro(made) || (question.member.empty() && isInMacro(places[question.where]));
  for (const Location &step : question.history)
    site.isMadeInMacro |= isInMacro(places[step]);
  if (!question.member.empty())
    describeMember(site, question, made, program);
  return site;
}

} // namespace

bool CodeSite::isTensor(const Location &where) const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Location &tensor) { return sameRange(tensor, where); });
}

const Variable *CodeSite::declared(std::string_view name, const Location &where) const {
  const Variable *result = nullptr;
  for (const Variable &local : locals)
    if (local.name.view() == name && local.where.file == where.file && local.where < where)
      result = &local;
  return result;
}

std::vector<CodeSite> sitesOf(const std::vector<SiteQuestion> &questions, const Program &program) {
  Places places;
  for (const SiteQuestion &question : questions) {
    places[question.where];
    places[question.fixAt];
    for (const Location &step : question.history)
      places[step];
  }
  if (!places.empty())
    findFacts(places, program);
  std::vector<CodeSite> sites;
  sites.reserve(questions.size());
  for (const SiteQuestion &question : questions)
    sites.push_back(siteOf(question, places, program));
  return sites;
}

} // namespace devicetidy
