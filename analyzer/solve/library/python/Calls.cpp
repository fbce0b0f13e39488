//===- Calls.cpp - calls of Python values ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Defaults.h"
#include "analyzer/solve/library/python/GivenCalls.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Spread.h"
#include "analyzer/solve/library/python/Words.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Containers.h"

#include <algorithm>

namespace devicetidy {
namespace python {
namespace {

using models::Effect;

Name typeOf(const Value &value) {
  static const std::map<ValueKind, Name> types = {
      {ValueKind::Tensor, "at::Tensor"},          {ValueKind::Device, "c10::Device"},
      {ValueKind::Options, "c10::TensorOptions"}, {ValueKind::List, "std::vector<at::Tensor>"},
      {ValueKind::Null, "c10::nullopt_t"},        {ValueKind::Scalar, "long"}};
  if (is(value, ValueKind::Record))
    return value->type;
  const auto found = types.find(value->kind);
  return found == types.end() ? Name() : found->second;
}

// A list of what was moved, of which nothing else is known, is one of tensors.
Value asOperands(const Call &call, const Row &row, const Value &value, bool areTensors) {
  const Value held = is(value, ValueKind::Address) ? call.machine.memory.read(row, value->address) : value;
  if (!is(held, ValueKind::List))
    return value;
  ValueData data = *held;
  bool areChanged = false;
  for (auto *parts : {&data.elements, &data.summary})
    for (Value &each : *parts) {
      const Value before = std::exchange(each, asOperand(call, each, areTensors));
      areChanged |= before != each;
    }
  return areChanged ? makeValue(std::move(data)) : value;
}

// An operator whose operands are tensors, and no numbers.
bool takesTensorsAlone(const Machine &machine, const std::string &name) {
  const models::Op *op = startsWith(name, "torch::nn::functional::")
                             ? models::functional(lastPart(name), machine.version)
                             : models::atenOp(lastPart(name), machine.version);
  return op && op->rule == models::Rule::Strict;
}

} // namespace

Outcomes callTorch(Call &call, Row row, const std::string &name, const std::vector<Argument> &args,
                   bool hasObject, Name type) {
  Fact fact = call.fact;
  fact.name = Name(name);
  fact.target = {};
  fact.type = type;
  fact.captures.clear();
  fact.isVirtual = fact.isIndirect = fact.resultIsAddress = false;
  fact.hasObject = hasObject;
  fact.isDiscarded &= hasObject;
  fact.operands.clear();
  const bool areTensors = takesTensorsAlone(call.machine, name);
  for (const Argument &arg : args) {
    Operand operand = arg.written ? *arg.written : Operand();
    if (!arg.written)
      operand.where = call.fact.where;
    const Value value = asOperands(call, row, asOperand(call, arg.value, areTensors), areTensors);
    const Value held = is(value, ValueKind::Address) ? call.machine.memory.read(row, value->address) : value;
    operand.type = typeOf(held);
    operand.isAddress = is(value, ValueKind::Address) || arg.address.valid();
    operand.reg = static_cast<Reg>(row.registers.size());
    row.registers.push_back(arg.address.valid() ? addressValue(arg.address) : value);
    fact.operands.push_back(operand);
  }
  return call.machine.callAs(call.frame, row, fact);
}

namespace {

// Of f(*x.shape[-2:], stride, device): the last of those that must be given. Null: it is none of them.
const Argument *givenBehindRest(const Function &function, const Given &given, std::size_t parameter) {
  const auto first = function.locals.begin();
  const auto needed =
      static_cast<std::size_t>(std::find_if(first, first + function.requiredParams,
                                            [](const Variable &each) { return each.isConst; }) -
                               first);
  const std::size_t count = given.behindRest.size();
  return given.rest && parameter < needed && parameter + count >= needed &&
                 given.positional.size() + count <= needed
             ? &given.behindRest[parameter + count - needed]
             : nullptr;
}

} // namespace

Outcomes callFunction(Call &call, Row row, const Function &function, const Value &callable, Address self,
                      const Given &given) {
  std::vector<Argument> bound(function.paramCount, Argument{missing(), {}});
  std::size_t next = 0, fromRest = 0;
  bool isSpent = false; // what * brings is for the parameters that must be given, where there are some
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const std::string_view name = function.locals[i].name.view();
    if (startsWith(name, "**")) {
      std::map<Name, Value> rest;
      for (const auto &[keyword, argument] : given.named) {
        bool isTaken = false;
        for (std::size_t j = 0; j < bound.size(); ++j)
          isTaken |= function.locals[j].name == keyword;
        if (!isTaken)
          setEntry(rest, Name("[" + keyword.str() + "]"), argument.value);
      }
      bound[i].value = !given.isOpen  ? allocated(call, row, dictType, recordValue(dictType, rest))
                       : rest.empty() ? passedOn(call, row, given.namedRest, nullptr)
                                      : unknownValue();
    } else if (startsWith(name, "*")) {
      std::vector<Value> rest;
      for (; next < given.positional.size(); ++next)
        rest.push_back(given.positional[next].value);
      const bool isListed = given.rest && is(behind(call, given.rest), ValueKind::List) && fromRest == 0;
      bound[i].value = !given.isOpen                   ? listValue("std::vector<at::Tensor>", std::move(rest))
                       : rest.empty() && fromRest == 0 ? passedOn(call, row, given.rest, nullptr)
                       : isListed                      ? listBeginning(rest, alternatives(call, given.rest))
                                                       : unknownValue();
    } else if (i < function.requiredParams && next < given.positional.size()) {
      bound[i] = given.positional[next++];
    } else if (const Argument *last = givenBehindRest(function, given, i)) {
      bound[i] = *last;
    } else {
      for (const auto &[keyword, argument] : given.named)
        if (keyword.view() == name)
          bound[i] = argument;
      const auto &parameter = function.locals[i];
      const bool isPlace = given.namedRest && call.machine.types.classOf(parameter.type) == TypeClass::Device;
      const bool isPositional = i < function.requiredParams && given.rest;
      isSpent |= isPositional && isMissing(bound[i].value) && !parameter.isConst;
      const bool mayBeGiven = given.namedRest || (isPositional && !isSpent);
      if (given.isOpen && isMissing(bound[i].value) &&
          (!parameter.isConst || isPlace)) // else it has a default
        bound[i].value =
            isPositional && !parameter.isConst
                ? passedOn(call, row, given.rest, scalarValue(intTerm(static_cast<std::int64_t>(fromRest++))))
                : passedOn(call, row, given.namedRest, scalarValue(textTerm(Name(name))));
      else if (mayBeGiven && isMissing(bound[i].value) && !function.isModel)
        bound[i].value = perhapsGiven(call, row, given.namedRest, name);
    }
  }
  if (callable && !callable->fields.empty()) // what it has captured is in the fields of its closure
    self = allocated(call, row, "python::closure", callable)->address;
  std::vector<Value> values(bound.size());
  for (std::size_t i = 0; i < bound.size(); ++i) {
    values[i] = bound[i].value;
    if (isPerhaps(values[i]))
      continue;
    if (isOpen(values[i]) && function.locals[i].type == numberType) // so an annotation says
      values[i] = openValue(values[i]->origin, values[i]->function, 0);
    if (isOpen(values[i]) && call.machine.types.classOf(function.locals[i].type) == TypeClass::Device &&
        !function.locals[i].isConst)
      values[i] = asChosenDevice(values[i]);
    if (isOpen(values[i]) && call.machine.types.classOf(function.locals[i].type) == TypeClass::Tensor) {
      if (!function.locals[i].isConst) // may not be left out
        row.assume(isTensorQuestion(values[i])->term, 1);
      values[i] = isOpenRank(values[i]->rank) ? asTensor(call, values[i]) // else somebody says: of numbers
                                              : unknownValue();
    }
  }
  return call.machine.invoke(call.frame, call.fact, std::move(row), function, self, std::move(values));
}

Outcomes callValue(Call &call, Row row, const Value &callee, const Given &given, const Argument &written) {
  Machine &machine = call.machine;
  if (is(callee, ValueKind::Function)) {
    if (const Function *function = machine.program.function(callee->function); function && function->hasBody)
      return callFunction(call, std::move(row), *function, callee, {}, given);
    const std::string_view name = callee->type.view();
    if (startsWith(name, classPrefix))
      return constructObject(call, std::move(row), callee, given);
    if (!isMissing(callee))
      return callLibrary(call, std::move(row), std::string(name), given);
  }
  if (is(callee, ValueKind::Record) && callee->type == boundType) {
    const auto object = callee->fields.find("self"), name = callee->fields.find("name");
    if (const auto text = textOf(call, name->second))
      return callMethod(call, std::move(row), {object->second, {}, written.text, written.written}, *text,
                        given);
  }
  const Value object = is(callee, ValueKind::Address) ? machine.memory.read(row, callee->address) : callee;
  if (is(callee, ValueKind::Address) && is(object, ValueKind::Record)) {
    const Argument called{callee, {}, written.text, written.written};
    if (machine.types.isModule(object->type))
      return callModule(call, row, called,
                        object->fields.count(spreadField) ? brought(call, row, callee->address, given)
                                                          : given);
    // Python asks the class for it, and never __getattr__.
    if (findMethod(machine, object->type, "__call__") || object->fields.count("__call__"))
      return callMethod(call, std::move(row), called, "__call__", given);
  }
  if (isSomePart(callee))
    if (std::optional<Outcomes> outcomes = callAnyMethod(call, row, callee, given))
      return std::move(*outcomes);
  ++machine.solution.stats.unknownCalls["(callable that is not known)"];
  meetLoss(call, row, given);
  return done(row, madeByOpen(call, row, callee, given));
}

namespace {

// A call of a method of the program: of the object's class, or of a class behind it.
Outcomes callOwn(Call &call, Row row, const Function &method, const Argument &object, const Given &given) {
  const bool takesClass =
      method.isStatic && method.paramCount > 0 && startsWith(method.locals[0].type.view(), classPrefix);
  Given with = given;
  const Value on = behind(call, object.value); // a class, or an object of one
  const bool isClass = is(on, ValueKind::Function) && startsWith(on->type.view(), classPrefix);
  const Name type = is(on, ValueKind::Record) ? on->type : method.className;
  if (takesClass)
    with.positional.insert(
        with.positional.begin(),
        Argument{isClass ? on : libraryFunction(Name(std::string(classPrefix) + type.str())), {}});
  const Address self =
      !method.isStatic && is(object.value, ValueKind::Address) ? object.value->address : Address();
  return callFunction(call, std::move(row), method, nullptr, self, with);
}

} // namespace

Outcomes callUnknownModule(Call &call, Row row, const Given &given) {
  ++call.machine.solution.stats.unknownCalls["(callable that is not known)"];
  return done(row, madeByModule(call, row, given));
}

bool isOfSeveralClasses(const Machine &machine, const Value &object, const std::string &name) {
  const Function *own = findMethod(machine, object->type, name);
  const bool isOfLibrary = own && own->isModel; // and so are most of its objects
  if (!object->origin || !applies(object->origin, op::pointee) || isOfLibrary)
    return false;
  const std::vector<Name> &derived = machine.types.derivedFrom(object->type);
  return std::any_of(derived.begin(), derived.end(),
                     [&, own](Name type) { return findMethod(machine, type, name) != own; });
}

Outcomes callMethod(Call &call, Row row, const Argument &object, const std::string &name,
                    const Given &given) {
  Machine &machine = call.machine;
  const Value value =
      isMethodOfTensors(machine, name) ? asOperand(call, object.value) : whereAsked(call, object.value);
  if (is(value, ValueKind::Device) && name == "startswith" && !given.positional.empty())
    return done(row, answered(call, namesDevice(call, value, given.positional.front().value)));
  const bool isMove = isOneOf(name, {"to", "cuda", "cpu"});
  if (isMove && is(value, ValueKind::Unknown))
    return moveUnknown(call, std::move(row), object, name, given);
  if (isOpen(value))
    return callMethodOfOpen(call, std::move(row), value, name, given);
  if (is(value, ValueKind::Tensor)) {
    if (is(whereUsed(call, object.value), ValueKind::Tensor)) // what was moved can be a module, too
      noteDiscarded(call, object, name);
    return callTensorMethod(call, std::move(row), {value, object.address, object.text, object.written}, name,
                            given);
  }
  if (isMove && is(value, ValueKind::Address))
    machine.movedInPlace.insert(call.fact.where);
  if (is(value, ValueKind::Function) && startsWith(value->type.view(), classPrefix)) {
    const Name type(value->type.view().substr(classPrefix.size()));
    const Function *method = findMethod(machine, type, name);
    if (method && !method->isStatic && !given.positional.empty()) { // Base.method(self, ..)
      Given rest = given;
      rest.positional.erase(rest.positional.begin());
      return callOwn(call, std::move(row), *method, given.positional[0], rest);
    }
    return method ? callOwn(call, std::move(row), *method, object, given) : done(row, unknownValue());
  }
  const Value held = is(value, ValueKind::Address) ? machine.memory.read(row, value->address) : value;
  if (is(value, ValueKind::Address) && is(held, ValueKind::Record)) {
    const bool isOriginal = name == classForward;
    if (const auto own = held->fields.find("forward"); name == "forward" && own != held->fields.end())
      return callValue(call, std::move(row), own->second, given, object);
    if (isOriginal && !findMethod(machine, held->type, "forward"))
      return callModuleMethod(call, std::move(row), {value, {}, object.text, object.written}, held->type,
                              "forward", given);
    if (isOfSeveralClasses(machine, held, name))
      return machine.types.isModule(held->type) && name == "forward"
                 ? callUnknownModule(call, std::move(row), given)
                 : done(row, unknownValue());
    if (const Function *method = findMethod(machine, held->type, isOriginal ? "forward" : name))
      return callOwn(call, std::move(row), *method, {value, {}, object.text, object.written}, given);
    if (name != "forward")
      for (const std::string &field : {name, hidden::submodule(Name(name))})
        if (const auto found = held->fields.find(Name(field)); found != held->fields.end())
          return is(found->second, ValueKind::Unknown) && machine.types.isModule(held->type) &&
                         (!isOpen(found->second) || takesTensor(given))
                     ? callUnknownModule(call, std::move(row), given)
                     : callValue(call, std::move(row), found->second, given, object);
    const bool isRead = // a property, a part of a module, what a given object keeps: called is what it gives
        findMethod(machine, held->type, "@get " + name) || partOfGiven(machine, row, held, name) ||
        (held->origin && setsAttribute(machine.types, held->type, Name(name)));
    if (machine.types.isModule(held->type) && !isRead)
      return callModuleMethod(call, std::move(row), {value, {}, object.text, object.written}, held->type,
                              name, given);
    if (isRead || findMethod(machine, held->type, "__getattr__")) {
      Outcomes outcomes;
      for (Outcome &got : attributeOf(call, std::move(row), {value, {}, object.text, object.written}, name)) {
        Outcomes called = callValue(call, std::move(got.row), got.result, given, object);
        outcomes.insert(outcomes.end(), called.begin(), called.end());
      }
      return outcomes;
    }
  }
  if (std::optional<Outcomes> outcomes =
          callContainerMethod(call, row, {value, {}, object.text, object.written}, name, given))
    return std::move(*outcomes);
  ++machine.solution.stats.unknownCalls["." + name];
  if (is(value, ValueKind::Address)) { // it may change what the object has
    const Term changed = applyTerm(op::address, {intTerm(value->address.root)});
    row.forgetConditions([&](Term term) { return contains(term, changed); });
  }
  return done(row, unknownResult(call, row));
}

std::optional<Outcomes> callSpecial(Call &call, const Argument &object, const std::string &name,
                                    const std::vector<Argument> &args) {
  const Value held = behind(call, object.value);
  if (!is(object.value, ValueKind::Address) || !is(held, ValueKind::Record) ||
      !findMethod(call.machine, held->type, name))
    return std::nullopt;
  Given given;
  given.positional = args;
  return callMethod(call, call.row, object, name, given);
}

namespace {

std::string lastWord(const Call &call) { return std::string(lastPart(call.fact.name.view())); }

// Where the receiver is a variable, the method may change what the variable holds.
Argument receiver(const Call &call) {
  const Operand &written = call.fact.operands[0];
  const Value value = call.operand(0);
  const bool isVariable = written.isAddress && is(value, ValueKind::Tensor);
  return {value, isVariable ? call.addressOf(0) : Address(), written.text, &written};
}

std::optional<Outcomes> callWord(Call &call, const Effect &) {
  return callValue(call, call.row, call.operand(0), givenTo(call, 1),
                   {call.operand(0), {}, call.fact.operands[0].text, &call.fact.operands[0]});
}

std::optional<Outcomes> methodWord(Call &call, const Effect &) {
  return callMethod(call, call.row, receiver(call), lastWord(call), givenTo(call, 1));
}

std::optional<Outcomes> libraryWord(Call &call, const Effect &) {
  return callLibrary(call, call.row, lastWord(call), givenTo(call, 0));
}

// The classes that super() looks through: those behind `own` in the class of the object.
std::vector<Name> classesBehind(const Call &call, const Address &self, Name own) {
  const Types &types = call.machine.types;
  const Value object = self.valid() ? call.machine.memory.read(call.row, self) : unknownValue();
  for (const Name type : {is(object, ValueKind::Record) ? object->type : own, own}) {
    const std::vector<Name> &order = types.lookupOrder(type);
    if (const auto found = std::find(order.begin(), order.end(), own); found != order.end())
      return {found + 1, order.end()};
  }
  return {};
}

std::optional<Outcomes> superWord(Call &call, const Effect &) {
  const Address self = call.addressOf(0);
  const std::string name = lastWord(call);
  const Argument object{addressValue(self), {}, call.fact.operands[0].text, &call.fact.operands[0]};
  const Name own = call.fact.templateTypes.empty() ? Name() : call.fact.templateTypes[0];
  for (const Name base : classesBehind(call, self, own)) {
    if (const Function *method = ownMethod(call.machine, base, name))
      return callOwn(call, call.row, *method, object, givenTo(call, 1));
    if (call.machine.types.isProject(base))
      continue;
    if (const Name library = libraryModule(call.machine, base);
        self.valid() && name == "__init__" && !library.empty())
      return constructBase(call, call.row, self, library, givenTo(call, 1));
    if (self.valid() && name != "__init__" && name != "__setattr__" && call.machine.types.isModule(base))
      return callModuleMethod(call, call.row, object, base, name, givenTo(call, 1));
  }
  const Given given = givenTo(call, 1);
  if (name == "__setattr__" && self.valid() && given.positional.size() == 2)
    if (const auto attribute = textOf(call, given.positional[0].value))
      return setOwnAttribute(call, call.row, object, *attribute, given.positional[1]);
  return call.done(unknownValue());
}

} // namespace

} // namespace python

Words pythonCallWords() {
  return {{{"py_call", python::callWord},
           {"py_method", python::methodWord},
           {"py_library", python::libraryWord},
           {"py_super", python::superWord}},
          {},
          {}};
}

} // namespace devicetidy
