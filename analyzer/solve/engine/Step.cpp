//===- Step.cpp - what one fact does to a row ----------------------===//
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TensorMemory.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/engine/Operators.h"

#include <algorithm>

namespace devicetidy {

namespace {

Value literalValue(const Fact &fact, const Types &types) {
  switch (fact.literal) {
  case LiteralKind::Bool:
  case LiteralKind::Int:
    return scalarValue(intTerm(fact.number));
  case LiteralKind::Enum:
    if (types.classOf(fact.type) == TypeClass::Device)
      return deviceValue(deviceOfEnum(fact.number));
    return scalarValue(intTerm(fact.number));
  case LiteralKind::String:
    return scalarValue(textTerm(fact.name));
  case LiteralKind::Null:
    return nullValue();
  case LiteralKind::Float:
    return scalarValue(floatTerm(fact.name));
  case LiteralKind::None:
    break;
  }
  return unknownValue();
}

// A pointer into a tensor's memory with a number added or taken away: the same memory. Null for other facts.
Value movedPointer(const Row &row, const Fact &fact, const Types &types) {
  if ((fact.name != op::plus && fact.name != op::minus) || !types.isPointer(fact.type))
    return nullptr;
  for (const Operand &operand : fact.operands)
    if (Value value = registerOf(row, operand.reg); isTensorMemory(value))
      return value;
  return nullptr;
}

// Arithmetic and comparisons of pointers into one sequence; null for other facts.
Value pointerResult(const Machine &machine, const Row &row, const Fact &fact) {
  if (fact.operands.size() != 2)
    return nullptr;
  Value left = registerOf(row, fact.operands[0].reg), right = registerOf(row, fact.operands[1].reg);
  if (!is(left, ValueKind::Address) && !is(right, ValueKind::Address))
    return nullptr;
  left = asPosition(machine.memory, row, left);
  right = asPosition(machine.memory, row, right);
  if (is(left, ValueKind::Scalar) && fact.name == op::plus)
    std::swap(left, right);
  if (!isPosition(left))
    return nullptr;
  if (is(right, ValueKind::Scalar) && (fact.name == op::plus || fact.name == op::minus)) {
    const Term by = fact.name == op::plus ? right->term : applyTerm(op::minus, {intTerm(0), right->term});
    const Address next = moved(left->address, by);
    return addressValue(sequenceOf(next).element(row.resolve(numberAt(next))));
  }
  if (!isPosition(right) || !areInOneSequence(left->address, right->address))
    return nullptr;
  return operatorValue(row, fact.name,
                       {scalarValue(numberAt(left->address)), scalarValue(numberAt(right->address))},
                       /*areIntegers=*/true);
}

Value operatorResult(Machine &machine, const Row &row, const Fact &fact) {
  const Types &types = machine.types;
  if (Value pointer = movedPointer(row, fact, types))
    return pointer;
  if (fact.name == op::cast)
    return machine.memory.behind(row, registerOf(row, fact.operands[0].reg), fact.type,
                                 fact.operands[0].text);
  if (Value result = pointerResult(machine, row, fact))
    return result;
  std::vector<Value> operands;
  bool areIntegers = true;
  for (const Operand &operand : fact.operands) {
    operands.push_back(registerOf(row, operand.reg));
    areIntegers &= types.isInteger(operand.type);
  }
  return operatorValue(row, fact.name, operands, areIntegers);
}

} // namespace

Value Call::operand(std::size_t i) const {
  if (i >= fact.operands.size())
    return unknownValue();
  const Operand &use = fact.operands[i];
  Value value = registerOf(row, use.reg);
  if (use.isAddress && is(value, ValueKind::Address))
    return machine.readMarked(row, value->address);
  // An enumerator that came through a template argument is a plain number.
  if (is(value, ValueKind::Scalar) && constantOf(value->term) &&
      machine.types.classOf(use.type) == TypeClass::Device)
    return deviceValue(deviceOfEnum(*constantOf(value->term)));
  return value;
}

Address Call::addressOf(std::size_t i) const {
  if (i >= fact.operands.size())
    return {};
  Value value = registerOf(row, fact.operands[i].reg);
  return is(value, ValueKind::Address) ? value->address : Address();
}

Argument Call::forwarded(std::size_t i) const {
  const std::size_t index = first + i;
  const bool isAddress = index < fact.operands.size() && fact.operands[index].isAddress;
  const Operand *written = index < fact.operands.size() ? &fact.operands[index] : nullptr;
  return {operand(index), isAddress ? addressOf(index) : Address(), written ? written->text : Name(),
          written};
}

std::vector<Argument> Call::forwardedFrom(std::size_t i) const {
  std::vector<Argument> args;
  for (; i < argCount(); ++i)
    args.push_back(forwarded(i));
  return args;
}

Outcomes Call::done(Value result) const {
  Outcomes outcomes;
  outcomes.push_back({row, std::move(result)});
  return outcomes;
}

Value Machine::readMarked(const Row &row, const Address &address) const {
  Value value = memory.read(row, address);
  const bool tensor = is(value, ValueKind::Tensor) && !value->address.valid();
  if (!address.path || (!tensor && !is(value, ValueKind::Address)))
    return value;
  Path first = address.path;
  while (first->parent)
    first = first->parent;
  Value owner = memory.read(row, {address.root, nullptr});
  if (!is(owner, ValueKind::Record) || !types.isProject(owner->type) || !types.isModule(owner->type))
    return value;
  // What a loop has registered is known by its iteration there, and by a number here.
  for (const auto &[name, field] : owner->fields)
    if (hidden::isSubmodule(name) && is(field, ValueKind::Address) && is(value, ValueKind::Address) &&
        field->address.root == value->address.root)
      return value;
  const Field *field = types.field(owner->type, first->field);
  if (!field || (value->history && value->history->step.kind == StepKind::Member))
    return value;
  return withHistory(value, note(value->history, StepKind::Member, field->where,
                                 owner->type.str() + "::" + first->field.str(), value->placement.describe()));
}

Value Machine::defaultObject(Name type) const {
  switch (types.classOf(type)) {
  case TypeClass::List:
    return listValue(type, {});
  case TypeClass::Map:
  case TypeClass::Record:
  case TypeClass::Pair:
  case TypeClass::Tuple:
  case TypeClass::Example:
    return recordValue(type);
  case TypeClass::Options:
    return optionsValue(nullptr);
  case TypeClass::Tensor:
  case TypeClass::Pointer:
  case TypeClass::Holder:
  case TypeClass::Optional:
  case TypeClass::Wrapper:
  case TypeClass::Nothing:
    return nullValue();
  default:
    return unknownValue();
  }
}

Value Machine::defaultArray(const Row &row, Name type, const Value &count) const {
  const Value element = defaultObject(types.inner(type));
  const auto number = row.numberOf(count);
  if (number && *number >= 0 && canListElements(static_cast<std::size_t>(*number)))
    return listValue(type, std::vector<Value>(static_cast<std::size_t>(*number), element));
  return summaryList(type, {element});
}

RootId Machine::arrayOver(const Frame &frame, Term site, Name type) {
  const Store *const before = (frame.user ? *frame.user : frame).before;
  unsigned copy = arrayCopy;
  while (before && before->get(memory.heap(site, copy, type)) &&
         isWithin(copy + 1 - arrayCopy, bounds::copiesPerSite, Bound::CopiesOfSite))
    ++copy;
  return memory.heap(site, copy, type);
}

Address Machine::allocate(Row &row, const Frame &frame, const Fact &fact, Name type) {
  const Term site = applyTerm(op::site, {textTerm(frame.function.id), intTerm(fact.where.line),
                                         intTerm(fact.where.column), textTerm(type)});
  const bool isRecord = types.classOf(type) == TypeClass::Record || types.classOf(type) == TypeClass::Other;
  Value fresh = isRecord ? recordValue(type) : defaultObject(type);
  if (Term iteration = iterationOf(frame, row)) {
    const RootId root = arrayOver(frame, site, type);
    row.store.set(root, summaryList({}, {fresh}));
    return Address{root, nullptr}.element(iteration);
  }
  unsigned copy = 0;
  while (isWithin(copy + 1, bounds::copiesPerSite, Bound::CopiesOfSite) &&
         row.store.get(memory.heap(site, copy, type)))
    ++copy;
  const RootId root = memory.heap(site, copy, type);
  row.store.set(root, fresh);
  return {root, nullptr};
}

void Machine::forgetFields(Row &row, const Address &object) const {
  Value record = memory.read(row, object);
  if (!is(record, ValueKind::Record))
    return;
  ValueData data = *record;
  for (auto &[name, field] : data.fields)
    if (is(field, ValueKind::Tensor) || is(field, ValueKind::Scalar) || is(field, ValueKind::List))
      field = unknownValue();
  memory.write(row, object, makeValue(std::move(data)));
}

bool Machine::stepInPlace(Frame &frame, const Fact &fact, Row &row) {
  auto addressIn = [&](std::size_t i) {
    Value value = registerOf(row, fact.operands[i].reg);
    return is(value, ValueKind::Address) ? value->address : Address();
  };
  auto localAddress = [&]() -> Address {
    const auto index = static_cast<std::size_t>(fact.number);
    return {memory.local(frame.depth, static_cast<unsigned>(index), frame.function.locals[index]), nullptr};
  };
  switch (fact.kind) {
  case FactKind::Literal:
    setRegister(row, fact.result, literalValue(fact, types));
    return true;
  case FactKind::Local:
    setRegister(row, fact.result, addressValue(localAddress()));
    return true;
  case FactKind::Global: {
    auto found = program.globals.find(fact.name);
    Name text = found == program.globals.end() ? fact.name : found->second.name;
    setRegister(row, fact.result, addressValue({memory.global(fact.name, fact.type, text), nullptr}));
    return true;
  }
  case FactKind::This:
    setRegister(row, fact.result, frame.self.valid() ? addressValue(frame.self) : unknownValue());
    return true;
  case FactKind::Field: {
    Address base = addressIn(0);
    Name field = fact.name;
    if (fact.operands.size() > 1) {
      // Through a pointer to member, whose value is the member's name. One that is not known may be any
      // member.
      Value member = registerOf(row, fact.operands[1].reg);
      std::optional<Name> known =
          is(member, ValueKind::Scalar) ? textOf(row.resolve(member->term)) : std::nullopt;
      if (!known)
        forgetFields(row, base);
      field = known ? Name(known->view().substr(known->view().rfind(':') + 1)) : Name();
    }
    setRegister(row, fact.result,
                base.valid() && !field.empty() ? addressValue(base.field(field)) : unknownValue());
    return true;
  }
  case FactKind::Element:
    stepElement(frame, fact, row);
    return true;
  case FactKind::Load: {
    if (isTensorMemory(registerOf(row, fact.operands[0].reg)))
      return false;
    Address address = addressIn(0);
    Value value = readMarked(row, address);
    if (fact.operands[0].isMoved && address.valid())
      memory.write(row, address, library.hooks.movedFrom(*this, fact.operands[0].type, value));
    if (is(value, ValueKind::Scalar))
      value = scalarValue(row.resolve(value->term));
    setRegister(row, fact.result, std::move(value));
    return true;
  }
  case FactKind::Store:
    if (isTensorMemory(registerOf(row, fact.operands[0].reg)))
      return false;
    stepStore(fact, row);
    return true;
  case FactKind::Call:
  case FactKind::Construct:
  case FactKind::EndScope:
    return false;
  case FactKind::New: {
    const Address where = allocate(row, frame, fact, fact.type);
    if (!fact.operands.empty())
      memory.write(row, where, defaultArray(row, fact.type, registerOf(row, fact.operands[0].reg)));
    setRegister(row, fact.result, addressValue(where));
    return true;
  }
  case FactKind::Closure: {
    std::map<Name, Value> captures;
    for (std::size_t i = 0; i < fact.operands.size() && i < fact.captures.size(); ++i)
      captures[fact.captures[i]] = registerOf(row, fact.operands[i].reg);
    ValueData made = *(fact.target.empty() ? libraryFunction(fact.name) : functionValue(fact.target, {}));
    made.fields = std::move(captures);
    const Value callable = makeValue(std::move(made));
    const Function *target = fact.captures.empty() ? nullptr : program.function(fact.target);
    if (target && target->isLambda && !closures.count(target))
      closures.emplace(target, Closure{row, callable});
    setRegister(row, fact.result, callable);
    return true;
  }
  case FactKind::Operator:
    setRegister(row, fact.result, operatorResult(*this, row, fact));
    return true;
  case FactKind::Aggregate: {
    std::vector<Value> values;
    for (const Operand &operand : fact.operands)
      values.push_back(registerOf(row, operand.reg));
    // A list made of one array (std::array, std::initializer_list) is that array.
    if (values.size() == 1 && is(values[0], ValueKind::List) && types.classOf(fact.type) == TypeClass::List &&
        types.program.type(fact.operands[0].type) &&
        types.program.type(fact.operands[0].type)->kind == TypeKind::Array) {
      setRegister(row, fact.result, listValue(fact.type, values[0]->elements));
      return true;
    }
    if (values.empty() && types.classOf(fact.type) == TypeClass::Record) {
      setRegister(row, fact.result, recordValue(fact.type));
      return true;
    }
    if (fact.captures.empty()) {
      setRegister(row, fact.result, listValue(fact.type, std::move(values)));
      return true;
    }
    std::map<Name, Value> fields;
    for (std::size_t i = 0; i < values.size() && i < fact.captures.size(); ++i)
      fields[fact.captures[i]] = values[i];
    setRegister(row, fact.result, recordValue(fact.type, std::move(fields)));
    return true;
  }
  case FactKind::Declare: {
    const auto index = static_cast<std::size_t>(fact.number);
    if (!frame.function.locals[index].isReference)
      row.store.set(localAddress().root, defaultObject(frame.function.locals[index].type));
    return true;
  }
  case FactKind::Opaque:
    if (!fact.operands.empty())
      forgetNamed(row, fact);
    setRegister(row, fact.result, unknownValue());
    return true;
  case FactKind::EndStatement:
    row.expressionEnded = true;
    return true;
  }
  return true;
}

std::vector<Row> Machine::step(Frame &frame, const Fact &fact, Row row) {
  std::vector<Row> rows;
  if (stepInPlace(frame, fact, row)) {
    rows.push_back(std::move(row));
    return rows;
  }
  if (fact.kind == FactKind::Call)
    return stepCall(frame, fact, std::move(row));
  if (fact.kind == FactKind::EndScope)
    return endScope(frame, fact, std::move(row));
  if (fact.kind != FactKind::Construct)
    return stepHostAccess(frame, fact, std::move(row));
  rows = stepConstruct(frame, fact, std::move(row));
  const Function *constructor = fact.target.empty() ? nullptr : program.function(fact.target);
  for (Row &made : rows)
    if (!constructor || !constructor->hasBody) // one of the program moves by itself
      library.hooks.afterCall(*this, frame, fact, made);
  return rows;
}

void Machine::stepStore(const Fact &fact, Row &row) {
  const Value target = registerOf(row, fact.operands[0].reg);
  const Address address = is(target, ValueKind::Address) ? target->address : Address();
  const RootInfo &root = memory.info(address.root);
  const bool endsInitialiser = root.isFlag && initialisedStatic && row.store.get(address.root);
  memory.write(row, address, registerOf(row, fact.operands[1].reg));
  if (endsInitialiser) {
    const std::string flag = root.origin->args[0]->name.str();
    initialisedStatic(row, Name(flag.substr(0, flag.size() - initialisedSuffix.size())));
  }
}

// What lies in a tensor's memory is not known, only where the memory is.
std::vector<Row> Machine::stepHostAccess(Frame &frame, const Fact &fact, Row row) {
  Call call{*this, frame, row, fact, 0};
  library.hooks.accessMemory(call);
  std::vector<Row> rows;
  if (row.failed && frame.depth > 0)
    return rows;
  row.failed = false;
  if (fact.kind == FactKind::Load)
    setRegister(row, fact.result, unknownValue());
  rows.push_back(std::move(row));
  return rows;
}

void Machine::stepElement(Frame &frame, const Fact &fact, Row &row) {
  Call call{*this, frame, row, fact, 1};
  Address base = call.addressOf(0);
  Value index = call.operand(1);
  if (Value pointer = registerOf(row, fact.operands[0].reg); isTensorMemory(pointer)) {
    setRegister(row, fact.result, std::move(pointer));
    return;
  }
  if (!base.valid() || !is(index, ValueKind::Scalar)) {
    setRegister(row, fact.result, unknownValue());
    return;
  }
  const Term number = row.resolve(index->term);
  const Value start = addressValue(base);
  if (!fact.operands[0].isAddress && isPosition(start)) { // `p[i]` of a pointer into a sequence
    const Address there = moved(base, number);
    setRegister(row, fact.result, addressValue(sequenceOf(there).element(row.resolve(numberAt(there)))));
  } else {
    setRegister(row, fact.result, addressValue(base.element(number)));
  }
}

} // namespace devicetidy
