//===- Construct.cpp - objects made by constructors, and by the library on the program's behalf ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TensorMemory.h"
#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {
namespace {

// How well a constructor parameter takes an argument; negative: not at all.
int fit(const Types &types, const Variable &parameter, const Value &argument) {
  const TypeClass wanted = types.classOf(parameter.type);
  switch (argument->kind) {
  case ValueKind::Tensor:
    return wanted == TypeClass::Tensor                                     ? 2
           : wanted == TypeClass::Optional || wanted == TypeClass::Wrapper ? 1
                                                                           : -1;
  case ValueKind::Device:
    return wanted == TypeClass::Device                                     ? 2
           : wanted == TypeClass::Options || wanted == TypeClass::Optional ? 1
                                                                           : -1;
  case ValueKind::Options:
    return wanted == TypeClass::Options ? 2 : -1;
  case ValueKind::Scalar:
    return wanted == TypeClass::Scalar || wanted == TypeClass::String ? 2
           : wanted == TypeClass::Tensor                              ? -1
                                                                      : 0;
  case ValueKind::List:
    return wanted == TypeClass::List                                    ? 2
           : wanted == TypeClass::Tensor || wanted == TypeClass::Scalar ? -1
                                                                        : 0;
  case ValueKind::Record:
    if (isTensorMemory(argument))
      return types.isPointer(parameter.type) ? 2 : -1;
    return parameter.type == argument->type ? 3 : wanted == TypeClass::Record ? 0 : -1;
  case ValueKind::Address:
    return wanted == TypeClass::Pointer || wanted == TypeClass::Holder ? 2 : parameter.isReference ? 0 : -1;
  default:
    return 0;
  }
}

// Can no pointer, iterator or holder be a value of this type?
bool isPlain(const Types &types, Name type) {
  switch (types.classOf(type)) {
  case TypeClass::Tensor:
  case TypeClass::Device:
  case TypeClass::Options:
  case TypeClass::Scalar:
  case TypeClass::Map:
  case TypeClass::Pair:
  case TypeClass::Tuple:
    return true;
  case TypeClass::List:
    return !types.program.type(type) || types.program.type(type)->kind != TypeKind::Array;
  case TypeClass::Record:
    return types.isProject(type) && !types.isModule(type);
  default:
    return false;
  }
}

} // namespace

const Function *Machine::selectConstructor(const Type &type, const std::vector<Argument> &args) const {
  const Function *best = nullptr;
  int bestScore = -1;
  for (Name id : type.constructors) {
    const Function *candidate = program.function(id);
    if (!candidate || args.size() < candidate->requiredParams || args.size() > candidate->paramCount)
      continue;
    int score = 0;
    bool fits = true;
    for (std::size_t i = 0; i < args.size() && fits; ++i) {
      const int one = fit(types, candidate->locals[i], args[i].value);
      fits = one >= 0;
      score += one;
    }
    // One that takes exactly as many is a companion, which knows the default arguments.
    score = 2 * score + (args.size() == candidate->paramCount);
    if (fits && score > bestScore) {
      best = candidate;
      bestScore = score;
    }
  }
  return best;
}

const Function *ownMethod(const Machine &machine, Name type, std::string_view name) {
  if (const Type *record = machine.program.type(type))
    for (Name id : record->methods)
      if (const Function *method = machine.program.function(id))
        if (method->hasBody && lastPart(method->name.view()) == name)
          return method;
  return nullptr;
}

const Function *findMethod(const Machine &machine, Name type, std::string_view name) {
  for (Name each : machine.types.lookupOrder(type))
    if (const Function *method = ownMethod(machine, each, name))
      return method;
  return nullptr;
}

Outcomes invokeForwarded(Call &call, Row row, const Function &callee, const Address &self,
                         const std::vector<Argument> &args) {
  std::vector<Value> bound;
  for (std::size_t i = 0; i < args.size() && i < callee.paramCount; ++i) {
    const Variable &parameter = callee.locals[i];
    // A reference wrapper turns into the reference that is wanted.
    const bool isWrapped =
        is(args[i].value, ValueKind::Address) && isPlain(call.machine.types, parameter.type);
    const Address given = isWrapped ? args[i].value->address : args[i].address;
    if (!parameter.isReference) {
      bound.push_back(isWrapped ? call.machine.memory.read(row, given) : args[i].value);
    } else if (given.valid()) {
      bound.push_back(addressValue(given));
    } else {
      // A reference parameter needs an address even for a temporary.
      Address temporary = call.machine.allocate(row, call.frame, call.fact, parameter.type);
      call.machine.memory.write(row, temporary, args[i].value);
      bound.push_back(addressValue(temporary));
    }
  }
  return call.machine.invoke(call.frame, call.fact, std::move(row), callee, self, std::move(bound));
}

namespace {

// What a copied module registers is reached through the copy as well, which may outlive what it was copied
// from.
Value rehomed(const Value &module, const Address &from, const Address &to) {
  return rewriteAddresses(module, [&](const Address &address) {
    return address.root == from.root && !from.path ? Address{to.root, appendPath(to.path, address.path)}
                                                   : address;
  });
}

} // namespace

std::vector<Row> Machine::construct(const Frame &caller, const Fact &fact, Row row, Name type,
                                    const Address &where, const std::vector<Argument> &args) {
  std::vector<Row> rows;
  const Type *record = program.type(type);
  Frame frame = caller;
  Call call{*this, frame, row, fact, 1};
  const Function *constructor = record && record->isProject ? selectConstructor(*record, args) : nullptr;
  if (constructor && constructor->hasBody) {
    memory.write(row, where, recordValue(type));
    for (Outcome &outcome : invokeForwarded(call, row, *constructor, where, args))
      rows.push_back(std::move(outcome.row));
    return rows;
  }
  if (std::optional<Outcomes> outcomes = makeObject({call, type, where, args})) {
    for (Outcome &outcome : *outcomes) {
      const bool isCopied = types.isModule(type) && args.size() == 1 && args[0].address.valid();
      memory.write(outcome.row, where,
                   isCopied ? rehomed(outcome.result, args[0].address, where) : outcome.result);
      rows.push_back(std::move(outcome.row));
    }
    return rows;
  }
  memory.write(row, where, record && record->isProject ? recordValue(type) : unknownValue());
  rows.push_back(std::move(row));
  return rows;
}

// The elements of an array or of vector(n) at `where`: each is made as its class's default constructor does.
std::vector<Row> Machine::constructElements(const Frame &caller, const Fact &fact, Row row, Name inner,
                                            const Address &where) {
  const Value list = memory.read(row, where);
  const Type *record = program.type(inner);
  const Function *constructor = record && record->isProject ? selectConstructor(*record, {}) : nullptr;
  const bool isMade = types.classOf(inner) == TypeClass::Holder || (constructor && constructor->hasBody);
  std::vector<Row> rows;
  rows.push_back(std::move(row));
  if (!isMade || !is(list, ValueKind::List) || isSummary(list) ||
      list->elements.size() > bounds::unrolledElements)
    return rows;
  for (std::size_t i = 0; i < list->elements.size(); ++i) {
    std::vector<Row> next;
    for (const Row &before : rows)
      for (Row &after :
           construct(caller, fact, before, inner, where.element(intTerm(static_cast<std::int64_t>(i))), {}))
        next.push_back(std::move(after));
    if (!isWithin(next.size(), bounds::rowsPerOutcome, Bound::RowsOfElements))
      return rows;
    rows = std::move(next);
  }
  return rows;
}

namespace {

// The base part of an object: what the base owns is added to the record.
Value withBase(const Value &object, const Value &base) {
  Value whole = object;
  if (is(base, ValueKind::Record) && is(object, ValueKind::Record))
    for (const auto &[name, field] : base->fields)
      whole = withField(whole, name, field);
  return whole;
}

bool isFilledByCount(const std::vector<Argument> &args) {
  return args.empty() || (args.size() == 1 && is(args[0].value, ValueKind::Scalar));
}

} // namespace

// The object that a library class's constructor makes, in each row; nothing when no row of a model knows it.
std::optional<std::vector<Row>> Machine::constructModelled(Call &call, const Address &where, bool isBase) {
  const Fact &fact = call.fact;
  const std::vector<Argument> args = call.forwardedFrom(0);
  std::optional<Outcomes> made = makeObject({call, fact.type, where, args}, isBase);
  if (!made)
    return std::nullopt;
  std::vector<Row> rows;
  for (Outcome &outcome : *made) {
    memory.write(outcome.row, where,
                 isBase ? withBase(memory.read(outcome.row, where), outcome.result) : outcome.result);
    if (isFilledByCount(args) && types.classOf(fact.type) == TypeClass::List)
      for (Row &filled :
           constructElements(call.frame, fact, std::move(outcome.row), types.inner(fact.type), where))
        rows.push_back(std::move(filled));
    else
      rows.push_back(std::move(outcome.row));
  }
  return rows;
}

std::vector<Row> Machine::stepConstruct(Frame &frame, const Fact &fact, Row row) {
  Call call{*this, frame, row, fact, 1};
  const ObservedCall observed(calls, call);
  Address where = call.addressOf(0);
  std::vector<Row> rows;
  std::vector<Value> args;
  for (std::size_t i = 1; i < fact.operands.size(); ++i)
    args.push_back(registerOf(row, fact.operands[i].reg));
  const Function *constructor = fact.target.empty() ? nullptr : program.function(fact.target);
  if (const Type *made = program.type(fact.type); made && made->kind == TypeKind::Array && args.empty()) {
    const Value count = made->numbers.empty() ? unknownValue() : scalarValue(intTerm(made->numbers[0]));
    memory.write(row, where, defaultArray(row, fact.type, count));
    return constructElements(frame, fact, std::move(row), types.inner(fact.type), where);
  }
  if (constructor && constructor->hasBody) {
    // A base-class constructor runs on the object that is there already.
    Value current = memory.read(row, where);
    const bool isBase = is(current, ValueKind::Record) && frame.function.isConstructor && where == frame.self;
    if (!isBase)
      memory.write(row, where, recordValue(fact.type));
    for (Outcome &outcome : invoke(frame, fact, std::move(row), *constructor, where, std::move(args)))
      rows.push_back(std::move(outcome.row));
    return rows;
  }
  const bool isBase = frame.function.isConstructor && where == frame.self && where.valid();
  library.hooks.beforeCall(call);
  if (std::optional<std::vector<Row>> modelled = constructModelled(call, where, isBase))
    return std::move(*modelled);
  if (!isBase) {
    memory.write(row, where, types.isProject(fact.type) ? recordValue(fact.type) : unknownValue());
    ++solution.stats.unknownCalls[fact.name.str()];
    forgetWritten(call);
  }
  rows.push_back(std::move(row));
  return rows;
}

} // namespace devicetidy
