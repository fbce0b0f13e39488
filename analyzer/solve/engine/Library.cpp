//===- Library.cpp - looks up models and runs rows ---===//
#include "analyzer/solve/engine/Library.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/models/bodies/Bodies.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/engine/ModelBodies.h"

#include <algorithm>
#include <charconv>

namespace devicetidy {
namespace {

using models::Effect;

template <typename Table, typename Entries> void enter(Table &table, const Entries &entries) {
  for (const auto &[word, function] : entries)
    if (!table.emplace(word, function).second)
      throw std::logic_error("the word '" + std::string(word) + "' of models is defined twice");
}

// An argument of an effect in one row of the analysis.
struct Evaluated {
  Row row;
  std::vector<Argument> args;
};

Call inRow(const Call &call, Row &row) { return {call.machine, call.frame, row, call.fact, call.first}; }

std::optional<Outcomes> runEffect(Call &call, const Effect &effect);

constexpr std::string_view selfWord = "self", allWord = "args", argumentWord = "arg";

// Values are made anew: their terms belong to the thread.
using Constant = Value (*)(const Row &);
const std::map<std::string_view, Constant> &constants() {
  static const std::map<std::string_view, Constant> values = {
      {"cpu", [](const Row &) { return deviceValue(Placement::cpu()); }},
      {"cuda", [](const Row &) { return deviceValue(Placement::cuda(currentCudaIndex())); }},
      {"current", [](const Row &row) { return deviceValue(Placement::cuda(row.currentDevice)); }},
      {"null", [](const Row &) { return nullValue(); }},
      {"true", [](const Row &) { return scalarValue(intTerm(1)); }},
      {"false", [](const Row &) { return scalarValue(intTerm(0)); }}};
  return values;
}

// The number of the argument that `word` names: 2 for arg2.
std::optional<std::size_t> argumentNumber(std::string_view word) {
  std::size_t number = 0;
  if (!startsWith(word, argumentWord) || word.size() == argumentWord.size())
    return std::nullopt;
  const auto [end, error] =
      std::from_chars(word.data() + argumentWord.size(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
}

// What a word without parentheses stands for; `args` stands for several.
std::vector<Argument> leaf(const Call &call, const Effect &effect) {
  const std::string_view word = effect.word;
  if (effect.kind == Effect::Kind::Number)
    return {{scalarValue(intTerm(effect.number)), {}}};
  if (effect.kind == Effect::Kind::Text)
    return {{scalarValue(textTerm(Name(word))), {}}};
  if (const auto found = constants().find(word); found != constants().end())
    return {{found->second(call.row), {}}};
  if (word == selfWord && call.fact.hasObject)
    return {{call.object(), call.objectAddress(), call.fact.operands[0].text, &call.fact.operands[0]}};
  if (word == allWord)
    return call.forwardedFrom(0);
  if (const auto number = argumentNumber(word); number && *number < call.argCount())
    return {call.forwarded(*number)};
  return {{unknownValue(), {}}};
}

// The arguments of `effect`, from the first to the last, in each row that evaluating them leads to.
std::vector<Evaluated> evaluateArguments(Call &call, const Effect &effect) {
  std::vector<Evaluated> current;
  current.push_back({call.row, {}});
  for (const Effect &arg : effect.args) {
    std::vector<Evaluated> next;
    for (Evaluated &before : current) {
      Call inner = inRow(call, before.row);
      if (arg.kind != Effect::Kind::Call) {
        for (Argument &value : leaf(inner, arg))
          before.args.push_back(std::move(value));
        next.push_back(std::move(before));
        continue;
      }
      for (Outcome &outcome : runEffect(inner, arg).value_or(inner.done(unknownValue()))) {
        Evaluated after{std::move(outcome.row), before.args};
        after.args.push_back(
            {outcome.result, is(outcome.result, ValueKind::Address) ? outcome.result->address : Address()});
        next.push_back(std::move(after));
      }
    }
    current = std::move(next);
  }
  return current;
}

// The call `fact` with the arguments `on` in place of its own.
Fact factOn(const Fact &fact, Evaluated &on) {
  Fact made = fact;
  made.target = {};
  made.isIndirect = made.isVirtual = made.isDiscarded = made.hasObject = made.resultIsAddress = false;
  made.operands.clear();
  for (const Argument &arg : on.args) {
    Operand operand = arg.written ? *arg.written : Operand();
    if (!arg.written)
      operand.where = fact.where;
    operand.text = arg.text;
    operand.reg = static_cast<Reg>(on.row.registers.size());
    operand.isAddress = arg.address.valid();
    on.row.registers.push_back(arg.address.valid() ? addressValue(arg.address) : arg.value);
    made.operands.push_back(std::move(operand));
  }
  return made;
}

// A primitive gives a place or a value; the call wants one of them.
void giveAsAsked(const Call &call, Outcome &outcome) {
  const bool isPlace = is(outcome.result, ValueKind::Address);
  if (is(outcome.result, ValueKind::Unknown)) {
    Call inner = inRow(call, outcome.row);
    outcome.result = call.machine.unknownResult(inner);
  } else if (call.fact.resultIsAddress && !isPlace) {
    const Address copy = call.machine.allocate(outcome.row, call.frame, call.fact, call.resultType());
    call.machine.memory.write(outcome.row, copy, outcome.result);
    outcome.result = addressValue(copy);
  }
}

// The value of a bare word: what the call gives back is the argument itself where it gives an address.
Outcomes giveLeaf(const Call &call, const Effect &effect) {
  const std::vector<Argument> values = leaf(call, effect);
  if (values.empty())
    return call.done(unknownValue());
  const bool asPlace = call.fact.resultIsAddress && values[0].address.valid();
  return call.done(asPlace ? addressValue(values[0].address) : values[0].value);
}

std::optional<Outcomes> runEffect(Call &call, const Effect &effect) {
  const Library &library = call.machine.library;
  if (effect.kind != Effect::Kind::Call)
    return giveLeaf(call, effect);
  if (const Handler *handler = library.handler(effect.word))
    return (*handler)(call, effect);
  const Primitive *primitive = library.primitive(effect.word);
  if (!primitive)
    return std::nullopt;
  Outcomes outcomes;
  for (Evaluated &on : evaluateArguments(call, effect)) {
    const Fact fact = factOn(call.fact, on);
    Call inner{call.machine, call.frame, on.row, fact, 0};
    for (Outcome &outcome : (*primitive)(inner))
      outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

std::optional<Outcomes> runRow(Call &call, const models::Row &row) {
  if (row.arity >= 0 && static_cast<std::size_t>(row.arity) != call.argCount())
    return std::nullopt;
  if (row.effects.size() == 1 && call.machine.library.handler(row.effects[0].word))
    return runEffect(call, row.effects[0]);
  Outcomes current = call.done(unknownValue());
  bool isAnswered = false;
  for (const Effect &effect : row.effects) {
    Outcomes next;
    isAnswered = false;
    for (Outcome &before : current) {
      Call inner = inRow(call, before.row);
      std::optional<Outcomes> outcomes = runEffect(inner, effect);
      isAnswered |= outcomes.has_value();
      if (outcomes)
        std::move(outcomes->begin(), outcomes->end(), std::back_inserter(next));
      else
        next.push_back(std::move(before));
    }
    current = std::move(next);
  }
  if (!isAnswered)
    return std::nullopt;
  for (Outcome &outcome : current)
    giveAsAsked(call, outcome);
  return current;
}

namespace valueKind {
const Name iterator("iterator"), element("element"), callable("callable"), node("node");
}

} // namespace

Library::Library(const Hooks &hooks, std::initializer_list<Words> words) : hooks(hooks) {
  for (const Words &each : words) {
    enter(handlers, each.handlers);
    enter(primitives, each.primitives);
    enter(makers, each.makers);
  }
}

std::vector<std::string_view> Library::words() const {
  std::vector<std::string_view> all;
  for (const auto &[word, function] : handlers)
    all.push_back(word);
  for (const auto &[word, function] : primitives)
    all.push_back(word);
  for (const auto &[word, function] : makers)
    all.push_back(word);
  std::sort(all.begin(), all.end());
  return all;
}

namespace {

void addModel(std::vector<ModelName> &models, const std::string &name, bool mayHaveBody) {
  const Name id(name);
  if (std::any_of(models.begin(), models.end(), [&](const ModelName &model) { return model.name == id; }))
    return;
  ModelName model{id, mayHaveBody ? models::bodiesOf(id) : Bodies(), &models::rows(name)};
  if (!model.bodies.empty() || !model.rows->empty())
    models.push_back(std::move(model));
}

// A class that has bodies has all its methods there; its kind has none for it.
void addMethod(std::vector<ModelName> &models, const Types &types, Name object, const std::string &method) {
  const std::string owner = types.templateOf(object).str();
  addModel(models, owner + method, true);
  addModel(models, "dt::" + std::string(types.kindOf(object)) + method, !models::hasBodies(Name(owner)));
}

} // namespace

std::vector<ModelName> modelNames(const Types &types, Name function, Name object) {
  const std::string scope(scopeOf(function.view()));
  std::vector<ModelName> models;
  addModel(models, function.str(), true);
  const std::string method(lastPart(function.view()));
  // A class derived from a container may do something else under the name of its base's method.
  const TypeClass kind = object.empty() ? TypeClass::Other : types.classOf(object);
  const bool isItsOwn = (kind == TypeClass::List || kind == TypeClass::Map) &&
                        models::typeKind(scope).empty() && types.templateOf(object).view() == scope;
  if (!object.empty() && !isItsOwn)
    addMethod(models, types, object, "::" + method);
  if (!object.empty() && startsWith(method, "operator ")) // to a type
    addMethod(models, types, object, "::operator T");
  if (const std::string space = scope.empty() ? std::string(prefixOfLibrary(function.view())) : scope;
      !space.empty())
    addModel(models, space + "::*", false);
  if (!object.empty())
    addMethod(models, types, object, "::*");
  return models;
}

std::vector<ModelName> constructorNames(const Types &types, Name type) {
  std::vector<ModelName> models;
  addMethod(models, types, type, "::construct");
  return models;
}

bool isValueWord(std::string_view word) {
  return constants().count(word) || word == selfWord || word == allWord || argumentNumber(word);
}

std::map<Name, std::vector<ModelName>> kindNames(Name function) {
  std::map<Name, std::vector<ModelName>> named;
  for (const Name kind : {valueKind::iterator, valueKind::element, valueKind::callable, valueKind::node}) {
    std::vector<ModelName> models;
    addModel(models, "dt::" + kind.str() + "::" + std::string(lastPart(function.view())),
             kind == valueKind::node);
    if (!models.empty())
      named.emplace(kind, std::move(models));
  }
  return named;
}

Outcomes runPrimitive(Call &call) {
  const Primitive *primitive = call.machine.library.primitive(lastPart(call.fact.name.view()));
  return primitive ? (*primitive)(call) : call.done(unknownValue());
}

namespace {

// What a value is whose class the library does not name: each library has classes of its own for
// iterators, for what std::bind makes and for what extract() gives.
Name kindOfValue(const Machine &machine, const Row &row, Name type, const Value &value) {
  const TypeClass known = machine.types.classOf(type);
  if ((known != TypeClass::Other && known != TypeClass::Record) || machine.types.isProject(type))
    return {};
  if (isElementProxy(value))
    return valueKind::element;
  if (is(value, ValueKind::Function))
    return valueKind::callable;
  if (is(value, ValueKind::Record) && value->type == nodeType)
    return valueKind::node;
  return isIterator(value) || mapAround(machine.memory, row, value) ? valueKind::iterator : Name();
}

std::optional<Outcomes> answerAs(Call &call, const std::vector<ModelName> &models) {
  for (const ModelName &model : models) {
    if (!model.bodies.empty()) // forwarding costs
      if (std::optional<Outcomes> outcomes = runBody(call, model.bodies, call.forwardedFrom(0)))
        return outcomes;
    for (const models::Row &row : *model.rows)
      if (std::optional<Outcomes> outcomes = runRow(call, row))
        return outcomes;
  }
  return std::nullopt;
}

std::optional<Outcomes> makeAs(const Making &making, const std::vector<ModelName> &models, bool isBase) {
  Call &call = making.call;
  for (const ModelName &model : models) {
    if (!isBase)
      if (std::optional<Outcomes> made =
              constructByBody(call, model.bodies, making.type, making.where, making.args))
        return made;
    for (const models::Row &row : *model.rows) {
      if (row.arity >= 0 && static_cast<std::size_t>(row.arity) != making.args.size())
        continue;
      const Effect &last = row.effects.back();
      if (const Maker *maker = call.machine.library.maker(last.word)) {
        if (std::optional<Outcomes> made = (*maker)(making, last))
          return made;
        continue;
      }
      Evaluated on{call.row, making.args};
      Fact fact = factOn(call.fact, on);
      fact.type = making.type;
      Call inner{call.machine, call.frame, on.row, fact, 0};
      if (std::optional<Outcomes> made = runRow(inner, row))
        return made;
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<Outcomes> answer(Call &call) {
  const Fact &fact = call.fact;
  if (const auto &byKind = call.machine.modelsByValue(fact.name); !byKind.empty())
    for (std::size_t i = 0; i < fact.operands.size() && i < (fact.hasObject ? 1 : 2); ++i)
      if (const auto models =
              byKind.find(kindOfValue(call.machine, call.row, fact.operands[i].type, call.operand(i)));
          models != byKind.end())
        if (std::optional<Outcomes> outcomes = answerAs(call, models->second))
          return outcomes;
  return answerAs(call, call.machine.modelsOf(fact));
}

std::optional<Outcomes> makeObject(const Making &making, bool isBase) {
  static const Name construct("construct");
  Machine &machine = making.call.machine;
  const Value first = making.arg(0);
  const bool isOne = making.args.size() == 1;
  if (isOne && is(first, ValueKind::Record) && first->type == making.type) // a copy
    return making.done(first);
  if (std::optional<Outcomes> made = makeAs(making, machine.constructorsOf(making.type), isBase))
    return made;
  const auto &byKind = machine.modelsByValue(construct);
  const auto models = byKind.find(kindOfValue(machine, making.call.row, making.type, first));
  if (models != byKind.end())
    if (std::optional<Outcomes> made = makeAs(making, models->second, isBase))
      return made;
  // A copy of what has no model holds what that holds.
  const Operand *written = isOne ? making.args[0].written : nullptr;
  return written && written->type == making.type ? std::optional(making.done(first)) : std::nullopt;
}

const models::Effect *effectOf(Machine &machine, const Fact &fact, std::string_view word) {
  for (const ModelName &model : machine.modelsOf(fact))
    if (const models::Effect *effect = models::effect(*model.rows, word))
      return effect;
  return nullptr;
}

} // namespace devicetidy
