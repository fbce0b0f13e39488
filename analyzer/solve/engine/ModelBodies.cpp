#include "analyzer/solve/engine/ModelBodies.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Positions.h"

namespace devicetidy {
namespace {

const Name numberType("long"), placeType("dt::place"), madeType("dt::made"), restType("dt::rest");

bool takes(const Variable &parameter, const Value &value) {
  if (parameter.type == nodeType)
    return is(value, ValueKind::Record) && value->type == nodeType;
  if (parameter.type == placeType)
    return is(value, ValueKind::Address) || is(value, ValueKind::Record) || is(value, ValueKind::Unknown);
  return parameter.type != numberType || is(value, ValueKind::Scalar);
}

// How well `body` suits these arguments: one that asks for numbers where there are numbers is preferred, one
// that takes any further ones comes last. Negative when it does not.
int suits(const Function &body, const std::vector<Argument> &args) {
  const std::size_t count = body.paramCount;
  const bool isOpen =
      count > 0 && (body.locals[count - 1].type == madeType || body.locals[count - 1].type == restType);
  if (isOpen ? args.size() + 1 < count : args.size() != count)
    return -1;
  int score = isOpen ? 0 : 1;
  for (std::size_t i = 0; i < count - isOpen; ++i) {
    const Variable &parameter = body.locals[i];
    if (!takes(parameter, args[i].value))
      return -1;
    score += parameter.type == numberType || parameter.type == placeType || parameter.type == nodeType;
  }
  return score;
}

// The one for these arguments; null when there is none.
const Function *select(const Bodies &bodies, const std::vector<Argument> &args) {
  const Function *best = nullptr;
  int bestScore = -1;
  for (const Function *body : bodies)
    if (const int score = suits(*body, args); score > bestScore) {
      best = body;
      bestScore = score;
    }
  return best;
}

// The element that a container of `type` constructs from `args`, in each row that its constructor leaves.
Outcomes makeElement(Call &call, Name type, const std::vector<Argument> &args) {
  Machine &machine = call.machine;
  const Types &types = machine.types;
  const Name inner = types.inner(type);
  const TypeClass kind = types.classOf(inner);
  static const Name wrapper("std::reference_wrapper");
  const Type *record = types.program.type(inner);
  const bool isWrapper =
      record && record->templateName == wrapper && args.size() == 1 && !is(args[0].value, ValueKind::Address);
  const bool isBuilt = kind == TypeClass::Record || kind == TypeClass::Holder || kind == TypeClass::Device ||
                       kind == TypeClass::Pair || kind == TypeClass::Tuple || kind == TypeClass::Example ||
                       kind == TypeClass::List || kind == TypeClass::Map || isWrapper;
  const bool isCopy = args.size() == 1 && (types.classOf(args[0].value->type) == kind ||
                                           is(args[0].value, ValueKind::Device) || !isBuilt);
  if (isCopy)
    return call.done(args[0].value);
  const Address made = machine.allocate(call.row, call.frame, call.fact, inner);
  if (args.empty() && !isBuilt)
    return call.done(machine.defaultObject(inner));
  Outcomes outcomes;
  for (Row &row : machine.construct(call.frame, call.fact, call.row, inner, made, args)) {
    Value value = machine.memory.read(row, made);
    outcomes.push_back({std::move(row), std::move(value)});
  }
  return outcomes;
}

// Runs `body` with `args`, the last ones packed as its last parameter wants it.
Outcomes invokeBody(Call &call, const Function &body, const Address &self, const std::vector<Argument> &args,
                    Name elementOf) {
  const std::size_t count = body.paramCount;
  const Name last = count ? body.locals[count - 1].type : Name();
  if (last != madeType && last != restType)
    return invokeForwarded(call, call.row, body, self, args);
  std::vector<Argument> bound(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(count - 1));
  const std::vector<Argument> further(args.begin() + static_cast<std::ptrdiff_t>(count - 1), args.end());
  if (last == restType) {
    std::vector<Value> values;
    for (const Argument &argument : further)
      values.push_back(argument.value);
    bound.push_back({listValue({}, std::move(values)), {}});
    return invokeForwarded(call, call.row, body, self, bound);
  }
  Outcomes outcomes;
  for (Outcome &made : makeElement(call, elementOf, further)) {
    bound.resize(count - 1);
    bound.push_back({std::move(made.result), {}});
    Call inRow{call.machine, call.frame, made.row, call.fact, call.first};
    for (Outcome &outcome : invokeForwarded(inRow, made.row, body, self, bound))
      outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

Value withType(const Value &list, Name type) {
  ValueData data = *list;
  data.type = type;
  return makeValue(std::move(data));
}

// A body returns a place or a value; the call wants one of them.
void giveAsAsked(Call &call, const Function &body, Outcome &outcome) {
  Machine &machine = call.machine;
  Call inRow{machine, call.frame, outcome.row, call.fact, call.first};
  const bool isPlace = body.resultIsReference && is(outcome.result, ValueKind::Address);
  if (isPlace && !call.fact.resultIsAddress)
    outcome.result = machine.memory.read(outcome.row, outcome.result->address);
  if (!isPlace && call.fact.resultIsAddress && !is(outcome.result, ValueKind::Unknown)) {
    const Address copy = machine.allocate(outcome.row, call.frame, call.fact, call.resultType());
    machine.memory.write(outcome.row, copy, outcome.result);
    outcome.result = addressValue(copy);
  }
  if (is(outcome.result, ValueKind::List) && machine.types.classOf(call.fact.type) == TypeClass::List)
    outcome.result = withType(outcome.result, call.fact.type);
  if (is(outcome.result, ValueKind::Unknown))
    outcome.result = machine.unknownResult(inRow);
}

} // namespace

std::optional<Outcomes> runBody(Call &call, const Bodies &bodies, const std::vector<Argument> &args) {
  const Function *body = select(bodies, args);
  const Address self = call.fact.hasObject ? call.objectAddress() : Address();
  if (!body || (call.fact.hasObject && !self.valid()))
    return std::nullopt;
  const Name type = call.fact.hasObject ? call.fact.operands[0].type : Name();
  Outcomes outcomes = invokeBody(call, *body, self, args, type);
  for (Outcome &outcome : outcomes)
    giveAsAsked(call, *body, outcome);
  return outcomes;
}

std::optional<Outcomes> constructByBody(Call &call, const Bodies &bodies, Name type, const Address &where,
                                        const std::vector<Argument> &args) {
  const Function *body = where.valid() ? select(bodies, args) : nullptr;
  if (!body)
    return std::nullopt;
  Row row = call.row;
  call.machine.memory.write(row, where, call.machine.defaultObject(type));
  Call inRow{call.machine, call.frame, row, call.fact, call.first};
  Outcomes outcomes = invokeBody(inRow, *body, where, args, type);
  for (Outcome &outcome : outcomes)
    outcome.result = call.machine.memory.read(outcome.row, where);
  return outcomes;
}

Site::Site(Call &inner, Name callee)
    : frame(inner.frame.site ? *inner.frame.user : inner.frame),
      fact(inner.frame.site ? *inner.frame.site : inner.fact), call{inner.machine, frame, inner.row, fact} {
  frame.depth = inner.frame.depth;
  frame.fixedIteration = inner.machine.iterationOf(inner.frame, inner.row);
  frame.hasFixedIteration = true;
  if (!callee.empty())
    fact.name = callee;
  fact.target = {};
  fact.resultIsAddress = fact.isIndirect = fact.isVirtual = fact.isDiscarded = fact.hasObject = false;
  fact.operands.clear();
}

} // namespace devicetidy
