//===- Reflection.cpp - what a program asks about its own values ---===//
//
// isinstance, hasattr, getattr, setattr, and the attributes of an object as a dictionary.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

constexpr int mostNested = 3;          ///< of objects in objects that settings are kept in
constexpr std::size_t mostMethods = 4; ///< that somebody outside chooses one of

bool isClass(const Value &type) {
  return is(type, ValueKind::List) ? std::all_of(type->elements.begin(), type->elements.end(), isClass)
                                   : is(type, ValueKind::Function);
}

// The same question about the same value has one answer.
Value classQuestion(const Value &value, const Value &type) {
  const Term identity = isOpen(value) ? value->origin : value->term;
  return identity && isClass(type)
             ? scalarValue(applyTerm("is a", {identity, intTerm(static_cast<std::int64_t>(type->hash))}))
             : unknownValue();
}

Value isInstance(const Call &call, const Value &value, const Value &type) {
  if (is(type, ValueKind::List) && !isSummary(type)) { // one of these
    const auto names = [&](const char *wanted) {
      return std::any_of(type->elements.begin(), type->elements.end(), [&](const Value &each) {
        return is(each, ValueKind::Function) && each->type.view() == wanted;
      });
    };
    if (is(behind(call, value), ValueKind::List) && names("builtins.list") && names("builtins.tuple"))
      return scalarValue(intTerm(1));
    bool isKnown = true;
    for (const Value &each : type->elements) {
      const Value answer = isInstance(call, value, each);
      const auto known = call.row.numberOf(answer);
      if (known == 1)
        return scalarValue(intTerm(1));
      isKnown &= known.has_value();
    }
    return isKnown ? scalarValue(intTerm(0)) : classQuestion(value, type);
  }
  const std::string_view name = is(type, ValueKind::Function) ? type->type.view() : std::string_view();
  if (isOpen(value) && name == "torch.Tensor")
    return isTensorQuestion(value);
  if (name == "torch.Tensor" &&
      is(value, ValueKind::Unknown)) // what is done with other things is of no interest
    return scalarValue(intTerm(1));
  if (isOpen(value) && call.frame.function.isModel) // which asks whether it certainly is one
    return scalarValue(intTerm(0));
  if (name.empty() || is(value, ValueKind::Unknown))
    return classQuestion(value, type);
  // An object of a class is no such value; numbers and texts may be enumerators.
  if (startsWith(name, classPrefix) &&
      (is(value, ValueKind::Tensor) ||
       (is(value, ValueKind::Scalar) &&
        !call.machine.types.hasUnknownBase(Name(name.substr(classPrefix.size()))))))
    return scalarValue(intTerm(0));
  if (name == "torch.device")
    return scalarValue(intTerm(is(value, ValueKind::Device)));
  if (const Value object = behind(call, value);
      is(value, ValueKind::Address) && is(object, ValueKind::Record)) {
    const std::string known = startsWith(name, classPrefix) ? std::string(name.substr(classPrefix.size()))
                              : name == "torch.nn.Module"   ? "torch::nn::Module"
                              : startsWith(name, "torch.nn.")
                                  ? "torch::nn::" + std::string(name.substr(9)) + "Impl"
                                  : std::string();
    if (!known.empty())
      return scalarValue(intTerm(call.machine.types.derivesFrom(object->type, known)));
  }
  if (name == "torch.Tensor")
    return scalarValue(intTerm(is(value, ValueKind::Tensor)));
  const Value held = behind(call, value);
  if (isOneOf(name.substr(name.rfind('.') + 1), {"dict", "Mapping", "MutableMapping"}))
    return scalarValue(intTerm(isDict(held)));
  const bool isListOrTuple = is(value, ValueKind::List) && isSummary(value); // from outside, or made of one
  if (isListOrTuple && isOneOf(name, {"builtins.list", "builtins.tuple"}))
    return classQuestion(value, type);
  if (name == "builtins.list")
    return scalarValue(intTerm(is(value, ValueKind::Address) && is(held, ValueKind::List)));
  if (isOneOf(name, {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", "builtins.bytes",
                     "builtins.bytearray", "builtins.complex"})) {
    if (!is(value, ValueKind::Scalar))
      return scalarValue(intTerm(0));
    if (textOf(call, value))
      return scalarValue(intTerm(name == "builtins.str"));
    const bool isNumber = call.row.numberOf(value).has_value();
    return isNumber && isOneOf(name, {"builtins.str", "builtins.int"})
               ? scalarValue(intTerm(name == "builtins.int"))
               : unknownValue();
  }
  if (name == "builtins.slice")
    return scalarValue(intTerm(is(value, ValueKind::Record) && value->type == sliceType));
  if (name == "builtins.tuple") // named ones are objects
    return scalarValue(
        intTerm(is(value, ValueKind::List) ||
                (is(held, ValueKind::Record) && findMethod(call.machine, held->type, "_asdict"))));
  return call.frame.function.isModel ? unknownValue() : scalarValue(guess(call.machine.freshScalar(call)));
}

// hasattr(value, name), where that is certain.
Value hasAttribute(const Call &call, const Value &value, const std::string &name) {
  const Value held = behind(call, value);
  if (is(value, ValueKind::Tensor))
    return models::atenOp(name, call.machine.version) || isOneOf(name, {"device", "shape", "dtype", "grad"})
               ? scalarValue(intTerm(1))
               : unknownValue();
  if (is(held, ValueKind::Record) &&
      (held->fields.count(Name(name)) || held->fields.count(Name(hidden::parameter(Name(name)))) ||
       held->fields.count(Name(hidden::submodule(Name(name)))) ||
       findMethod(call.machine, held->type, name) || findMethod(call.machine, held->type, "@get " + name)))
    return scalarValue(intTerm(1));
  if (is(value, ValueKind::Function) && startsWith(value->type.view(), classPrefix) &&
      findMethod(call.machine, Name(value->type.view().substr(classPrefix.size())), name))
    return scalarValue(intTerm(1));
  if (is(held, ValueKind::Record) && call.machine.types.isModule(held->type))
    return isOneOf(name, {"to", "cuda", "cpu", "parameters", "forward", "train", "eval", "state_dict"})
               ? scalarValue(intTerm(1))
               : unknownValue();
  if (isOpen(value) && !call.frame.function.isModel)
    return scalarValue(call.row.resolve(applyTerm("has", {value->origin, textTerm(Name(name))})));
  const bool isPlain =
      is(held, ValueKind::List) || isDict(held) || is(value, ValueKind::Scalar) || is(value, ValueKind::Null);
  return isPlain && isOneOf(name, {"to", "device", "cuda", "cpu", "shape", "dim", "size", "numpy", "detach"})
             ? scalarValue(intTerm(0))
             : unknownValue();
}

Value isCallable(const Call &call, const Value &value) {
  if (is(value, ValueKind::Function))
    return scalarValue(intTerm(1));
  if (const Value held = behind(call, value); is(held, ValueKind::Record) && !isDict(held))
    return held->type == boundType || call.machine.types.isModule(held->type) ||
                   findMethod(call.machine, held->type, "__call__")
               ? scalarValue(intTerm(1))
               : unknownValue();
  return is(value, ValueKind::Unknown) || is(value, ValueKind::Scalar) ? unknownValue()
                                                                       : scalarValue(intTerm(0));
}

// Whatever getattr finds under a name that is not known, in an object that is no module.
Value anyPartOf(const Call &call, const Value &object, const Value &name) {
  const Value held = behind(call, object);
  if (isSomePart(object))
    return object;
  const bool isPlain = is(object, ValueKind::Address) && is(held, ValueKind::Record) &&
                       call.machine.types.isProject(held->type) && !call.machine.types.isModule(held->type);
  return isPlain ? somePartOf(object->address, name->term ? call.row.resolve(name->term) : name->origin)
                 : unknownValue();
}

// Can somebody outside choose the method by its name, for a call with these arguments?
bool mayTake(const Function &method, const Given &given) {
  const std::string_view name = lastPart(method.name.view());
  const std::size_t count = given.positional.size() + given.named.size();
  const auto parameters = method.locals.begin();
  const auto needed = static_cast<std::size_t>( // the others have a default
      std::count_if(parameters, parameters + method.paramCount,
                    [](const Variable &each) { return !each.isConst && each.name.view()[0] != '*'; }));
  return method.hasBody && !method.isStatic && !given.isOpen && !name.empty() && name[0] != '_' &&
         name[0] != '@' && needed <= count && count <= method.paramCount;
}

// The attributes of an object as entries of a dictionary.
Value entriesOf(const Call &call, const Value &object) {
  std::map<Name, Value> entries;
  const Value held = behind(call, object);
  for (const auto &[field, value] : held->fields)
    if (!isEntry(field) && !hidden::isParameter(field) && !hidden::isSubmodule(field) &&
        field.view()[0] != '@')
      entries[Name("[" + field.str() + "]")] = value;
  return recordValue(dictType, std::move(entries));
}

} // namespace

std::optional<Outcomes> callAnyMethod(Call &call, const Row &row, const Value &part, const Given &given) {
  const Value held = call.machine.memory.read(row, part->address);
  const Type *type = call.machine.program.type(held->type);
  std::vector<const Function *> methods;
  for (Name id : type ? type->methods : std::vector<Name>())
    if (const Function *method = call.machine.program.function(id); method && mayTake(*method, given))
      methods.push_back(method);
  const Term asked = part->term;
  if (methods.empty() || methods.size() > mostMethods || !asked || applies(asked, op::concat))
    return std::nullopt; // of a name that is made some of the methods may be meant
  Outcomes outcomes;
  for (const Function *method : methods) {
    Row chosen = row;
    const Name name(lastPart(method->name.view()));
    if (!chosen.assume(applyTerm(op::equal, {asked, textTerm(name)}), 1))
      continue;
    chosen.guessed = true; // they may be names of some of them only
    for (Outcome &each : callFunction(call, std::move(chosen), *method, nullptr, part->address, given))
      outcomes.push_back(std::move(each));
  }
  if (outcomes.empty()) // it is none of them
    return std::nullopt;
  return outcomes;
}

void setAnyPart(const Call &call, Row &row, const Value &object, const Value &name, const Value &given) {
  if (!is(given, ValueKind::Unknown))
    return;
  row.guessed |= !isOpen(name) && !isOpen(given); // else the program may have made them, and knows better
  const bool isObject = is(object, ValueKind::Address) && is(behind(call, object), ValueKind::Record);
  if (isObject || isSomePart(object))
    chooseAttributes(call.machine, row, object->address, isObject ? 0 : mostNested);
}

void chooseAttributes(Machine &machine, Row &row, const Address &object, int nesting) {
  const Value held = machine.memory.read(row, object);
  ValueData data = *held;
  for (auto &[field, value] : data.fields)
    if (is(value, ValueKind::Null))
      value = unknownValue();
    else if (is(value, ValueKind::Scalar) || is(value, ValueKind::Device))
      value = optionOf(isEntry(field) ? field.str().substr(1, field.view().size() - 2) : field.str());
    else if (nesting > 0 && is(value, ValueKind::Address) &&
             is(machine.memory.read(row, value->address), ValueKind::Record))
      chooseAttributes(machine, row, value->address, nesting - 1);
  machine.memory.write(row, object, makeValue(std::move(data)));
}

std::optional<Outcomes> reflected(Call &call, Row &row, const std::string &name, const Given &given) {
  const std::vector<Argument> &args = given.positional;
  if (args.empty() ||
      !isOneOf(name, {"isinstance", "hasattr", "getattr", "setattr", "vars", "type", "callable"}))
    return std::nullopt;
  if (name == "callable")
    return done(row, isCallable(call, args[0].value));
  if (const Value held = behind(call, args[0].value);
      name == "type" && (isDict(held) || is(held, ValueKind::List)))
    return done(row, libraryFunction(isDict(held)                            ? "builtins.dict"
                                     : is(args[0].value, ValueKind::Address) ? "builtins.list"
                                                                             : "builtins.tuple"));
  if (name == "type")
    return attributeOf(call, row, args[0], "__class__");
  if (name == "vars")
    return attributeOf(call, row, args[0], "__dict__");
  if (args.size() < 2)
    return done(row, unknownValue());
  if (name == "isinstance")
    return done(row, isInstance(call, args[0].value, args[1].value));
  std::optional<std::string> attribute = textOf(call, args[1].value);
  // A module is registered under its name, whatever that is.
  if (!attribute && name == "setattr" && args.size() > 2 && is(args[2].value, ValueKind::Address))
    attribute = "attribute " + std::to_string(args[2].value->address.root);
  if (!attribute && name == "setattr" && args.size() > 2)
    setAnyPart(call, row, args[0].value, args[1].value, args[2].value);
  if (!attribute)
    return done(row, name == "setattr"   ? nullValue()
                     : name == "getattr" ? anyPartOf(call, args[0].value, args[1].value)
                                         : unknownValue());
  if (name == "hasattr")
    return done(row, hasAttribute(call, args[0].value, *attribute));
  const bool isOfLibrary = is(args[0].value, ValueKind::Function) && args[0].value->function.empty() &&
                           !startsWith(args[0].value->type.view(), classPrefix);
  if (name == "getattr" && isOfLibrary && args.size() == 2) // with something else to take, it may be missing
    return done(row, libraryFunction(Name(args[0].value->type.str() + "." + *attribute)));
  if (name == "getattr") // what it gives otherwise counts where there is no such attribute
    return args.size() > 2 && row.numberOf(hasAttribute(call, args[0].value, *attribute)) == 0
               ? done(row, args[2].value)
               : attributeOf(call, row, args[0], *attribute);
  return args.size() > 2 ? setAttribute(call, row, args[0], *attribute, args[2]) : done(row, nullValue());
}

Value hasOwnAttribute(const Call &call, const Value &object, const std::string &name) {
  const Value held = behind(call, object);
  if (!is(held, ValueKind::Record))
    return unknownValue();
  const bool isModule = call.machine.types.isModule(held->type);
  if (held->fields.count(Name(name)) ||
      (isModule && isOneOf(name, {"_parameters", "_buffers", "_modules", "training"})))
    return scalarValue(intTerm(1));
  return isModule || held->origin ? unknownValue() : scalarValue(intTerm(0));
}

Value attributesOf(const Call &call, const Value &vars) { return entriesOf(call, vars->fields.at("object")); }

Outcomes setAttributes(Call &call, const Row &row, const Value &vars, const Given &given) {
  std::map<Name, Value> entries;
  for (const Argument &each : given.positional)
    if (const Value from = behind(call, each.value); isDict(from))
      for (const Name field : fieldsInOrder(from))
        entries[field] = from->fields.at(field);
  for (const auto &[keyword, argument] : given.named)
    entries["[" + keyword.str() + "]"] = argument.value;
  Outcomes outcomes = done(row, nullValue());
  for (const auto &[field, value] : entries) {
    const std::optional<std::string> name = textOf(call, keyOf(field));
    for (Outcome &outcome : outcomes)
      if (name)
        outcome = std::move(
            setOwnAttribute(call, std::move(outcome.row), {vars->fields.at("object"), {}}, *name, {value, {}})
                .front());
  }
  return outcomes;
}

} // namespace devicetidy::python
