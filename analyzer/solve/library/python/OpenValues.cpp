#include "analyzer/solve/library/python/OpenValues.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Evidence.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/Words.h"

namespace devicetidy {
namespace python {
namespace {

using models::Effect;

constexpr int mostSteps = 4; ///< from the parameter to what is read: a list that is walked has no end

const Name movedPart("a part of what was moved");

int stepsTo(Term origin) {
  int steps = 0;
  for (; origin->kind == TermKind::Apply && origin->name != op::parameter && origin->name != movedPart &&
         origin->name != writtenInFile && !origin->args.empty();
       origin = origin->args[0])
    ++steps;
  return steps;
}

// What the program has put into an open value: a record of its attributes and entries.
RootId writtenTo(const Call &call, const Value &open) {
  return call.machine.memory.outside(open->origin, "python::open", open->function);
}

// `value`, where `there` is.
Value placedAt(const Value &there, const Value &value) {
  ValueData data = *value;
  data.placement = there->placement;
  data.history = there->history;
  return makeValue(std::move(data));
}

// What is read from it, where somebody says of which type that is.
Value read(const Call &call, const Row &row, const Value &open, Name field, Term origin,
           const std::string &text, Name said = {}) {
  const Name type = said == outputType ? Name() : said;
  if (const Value written = row.store.get(writtenTo(call, open))) {
    if (const auto found = written->fields.find(field); found != written->fields.end())
      return found->second;
    if (written->fields.count(anyEntryField))
      return unknownValue();
  }
  if (stepsTo(origin) > mostSteps || (isPlaced(open) && !isOf(origin, op::element)))
    return unknownValue(); // what an object that was moved keeps may be anywhere
  const Value value = call.machine.memory.symbolic(type, origin, Name(text));
  return isPlaced(open) ? placedAt(open, value) : value;
}

void write(const Call &call, Row &row, const Value &open, Name field, const Value &value) {
  const RootId root = writtenTo(call, open);
  const Value before = row.store.get(root);
  row.store.set(root, withField(before ? before : recordValue("python::open"), field, value));
}

std::optional<Outcomes> tensorWord(Call &call, const Effect &) {
  const Value value = call.operand(0);
  if (isOpen(value))
    call.row.assume(isTensorQuestion(value)->term, 1);
  return call.done(asTensor(call, value));
}

Outcomes withRank(Call &call, int rank) {
  const Value value = call.operand(0);
  if (!is(value, ValueKind::Tensor) || value->address.valid() || !isOpenRank(value->rank))
    return call.done(value);
  ValueData data = *value;
  data.rank = rank;
  return call.done(makeValue(std::move(data)));
}

// A tensor that holds several numbers has a dimension, and an index has none.
std::optional<Outcomes> wideWord(Call &call, const Effect &) { return withRank(call, someRank); }
std::optional<Outcomes> oneWord(Call &call, const Effect &) { return withRank(call, 0); }

// What a call gives of which nothing is known, and what the program asks for its device: it may be anywhere.
std::optional<Outcomes> askedWord(Call &call, const Effect &) {
  const Value value = asTensor(call, call.operand(0));
  if (!is(value, ValueKind::Unknown) || call.frame.function.isModel)
    return call.done(value);
  const Term origin = applyTerm(askedForDevice, {call.machine.freshScalar(call)});
  const Name device(call.fact.operands[0].text.str() + ".device()");
  return call.done(tensorValue(Placement::symbol(SymbolRole::Tensor, origin, device), unknownRank, nullptr));
}

// len(x.shape), which the tests of a program ask for; a row that knows it to be 0 knows that x is a number.
std::optional<Outcomes> dimensionsWord(Call &call, const Effect &) {
  const Value tensor = call.operand(0);
  if (!is(tensor, ValueKind::Tensor))
    return call.done(unknownValue());
  const int rank = call.machine.memory.rankOf(call.row, tensor);
  const Term asked = dimensionsOf(tensor);
  return call.done(scalarValue(rank >= 0                   ? intTerm(rank)
                               : asked && rank != someRank ? asked
                                                           : guess(call.machine.freshScalar(call))));
}

// The variable holds a tensor of so many dimensions.
std::optional<Outcomes> hasDimensionsWord(Call &call, const Effect &) {
  const Address variable = call.addressOf(0);
  const Value tensor = variable.valid() ? call.machine.memory.read(call.row, variable) : unknownValue();
  const std::optional<std::int64_t> count = call.row.numberOf(call.operand(1));
  if (is(tensor, ValueKind::Tensor) && !tensor->address.valid() && count) {
    ValueData data = *tensor;
    data.rank = static_cast<int>(*count);
    call.machine.memory.write(call.row, variable, makeValue(std::move(data)));
  }
  return call.done(nullValue());
}

// x.shape[i]
std::optional<Outcomes> lengthWord(Call &call, const Effect &) {
  return call.done(is(call.operand(0), ValueKind::Tensor) ? scalarValue(call.machine.freshScalar(call))
                                                          : unknownValue());
}

} // namespace

Value ofNumber(const Value &tensor, Term number) {
  ValueData data = *tensor;
  data.term = number;
  return makeValue(std::move(data));
}

std::optional<double> numberIn(const Value &tensor) {
  return is(tensor, ValueKind::Tensor) && tensor->term ? numberOf(tensor->term) : std::nullopt;
}

Value withoutNumber(const Value &tensor) { return numberIn(tensor) ? ofNumber(tensor, nullptr) : tensor; }

Value leftOutOr(const Value &tensor) { return ofNumber(tensor, symbolTerm("is left out")); }

bool mayBeLeftOut(const Value &value) {
  return is(value, ValueKind::Tensor) && value->term && !numberOf(value->term);
}

Value asTensor(const Call &call, const Value &value) {
  if (isPlaced(value))
    return tensorValue(value->placement, unknownRank, value->history);
  return isOpen(value) ? leftOutOr(call.machine.memory.symbolic("at::Tensor", value->origin, value->function))
                       : value;
}

Term numberOfOpen(const Value &value) {
  const Term origin = isOpen(value)                                                 ? value->origin
                      : is(value, ValueKind::Device) && isOutside(value->placement) ? value->placement.index
                                                                                    : nullptr;
  return origin ? applyTerm("number", {origin}) : nullptr;
}

Value isTensorQuestion(const Value &open) { return scalarValue(applyTerm(op::isTensor, {open->origin})); }

Value whereAsked(const Call &call, const Value &value) {
  const bool isSaidNumber = value->rank == 0;
  return isOpen(value) && !isSaidNumber && call.row.numberOf(isTensorQuestion(value)) == 1
             ? asTensor(call, value)
             : value;
}

bool isPlaced(const Value &value) { return isOpen(value) && value->placement.isKnown(); }

Value placedValue(Call &call, const Placement &device, bool isWhole, StepKind how, bool isGiven) {
  const Term moved = call.machine.freshScalar(call);
  Value open = openValue(isWhole ? moved : applyTerm(movedPart, {moved}),
                         call.fact.operands.empty() ? Name() : call.fact.operands[0].text);
  Step step{how, call.fact.where, open->function.str(), device.describe()};
  if (isGiven)
    step.givenTo = call.machine.entryCall;
  return placedAt(tensorValue(device, unknownRank, extend(nullptr, std::move(step))), open);
}

Value valueOfHost() {
  ValueData data;
  data.placement = Placement::cpu();
  return makeValue(std::move(data));
}

bool isOfHost(const Value &value) {
  return is(value, ValueKind::Unknown) && !isOpen(value) && value->placement.isKnown();
}

namespace {

// A batch and the like: what it has come with, under keys or numbers. Those of all iterations are alike.
Term batchOf(const Value &open) {
  const Term batch = isOpen(open) && isOf(open->origin, op::element) ? open->origin->args[0] : nullptr;
  return batch && isOf(batch, op::element) && !constantOf(batch->args[1]) && !textOf(batch->args[1])
             ? applyTerm(op::element, {batch->args[0], elementIndex()})
             : batch;
}

// Of what is on a device an entry under a key that the program does not write: a weight among others, no
// count of steps.
bool isUnderAnyKey(const Value &value) {
  if (!isPlaced(value) || !isOf(value->origin, op::element))
    return false;
  const Term key = value->origin->args[1];
  return !constantOf(key) && !textOf(key);
}

} // namespace

Value whereUsed(const Call &call, const Value &value) {
  const bool mayBeTensor = !isPlaced(value) && value->rank != 0 && value->type != moduleType;
  const Term batch = mayBeTensor ? batchOf(value) : nullptr;
  return batch && call.machine.unpacked.count(batch) ? asTensor(call, value) : whereAsked(call, value);
}

Value asOperand(const Call &call, const Value &value, bool isTensor) {
  if (isUnderAnyKey(value) || (isTensor && isPlaced(value) && value->type != moduleType)) {
    ValueData tensor = *asTensor(call, value);
    tensor.rank = someRank;
    return makeValue(std::move(tensor));
  }
  const Term origin = isPlaced(value) ? value->origin : nullptr;
  const bool isFirst =
      origin && isOf(origin, op::element) && constantOf(origin->args[1]) == 0; // of several results
  const bool isWhole = origin && isOf(isFirst ? origin->args[0] : origin, op::call);
  return isWhole ? asTensor(call, value) : whereUsed(call, value);
}

namespace {

void noteMoved(Row &row, const ModuleMove &move) {
  if (row.moves.empty() || row.moves.back().origin != move.origin ||
      row.moves.back().placement != move.placement)
    row.moves.push_back(move);
}

} // namespace

Outcomes moveUnknown(Call &call, Row row, const Argument &object, const std::string &name,
                     const Given &given) {
  std::vector<Argument> args = inOrder(call, given, name != "cpu");
  if (name == "cuda" && !args.empty())
    args[0].value = asGpu(call, args[0].value);
  args.insert(args.begin(),
              {tensorValue(Placement::unknown(), unknownRank, nullptr), {}, object.text, object.written});
  const std::string method = "at::Tensor::" + (name == "cuda" && args.size() > 1 ? "to" : name);
  Outcomes outcomes = callTorch(call, std::move(row), method, args, true);
  const Term batch =
      call.fact.isDiscarded ? nullptr : batchOf(object.value); // dropped, it is a module's move
  const Value whole = asTensor(call, object.value); // what an object keeps is for the object to place
  const bool isGiven = is(whole, ValueKind::Tensor) && !holderOf(whole->placement) &&
                       callThatWasGiven(whole->placement) == call.machine.entryCall;
  for (Outcome &outcome : outcomes) {
    const Placement device = call.machine.memory.placementOf(outcome.row, outcome.result);
    // To where another thing is that it came with: that says nothing of where it was.
    const bool isToOther = device.kind == PlacementKind::Symbol && device.role == SymbolRole::Tensor;
    if (batch && !isToOther)
      call.machine.unpacked.insert(batch);
    if (is(whole, ValueKind::Tensor) && device.kind == PlacementKind::Cuda)
      call.machine.movedUnder[whole->placement.index].insert(outcome.row.known.begin(),
                                                             outcome.row.known.end());
    if (const Term group = groupOf(device); group && isGiven && !isToOther)
      call.machine.broughtTo[group].insert(originOf(whole->placement));
    if (isOpen(object.value) && !batch) // a module moves itself
      noteMoved(outcome.row, {object.value->origin, device, nullptr});
    outcome.result = device.isKnown()
                         ? placedValue(call, device, true, StepKind::Moved, isGiven && !isToOther)
                         : unknownValue();
  }
  return outcomes;
}

Term pathFrom(Term whole, const std::string &path) {
  const auto before = isOf(whole, op::member) ? devicetidy::textOf(whole->args[1]) : std::nullopt;
  return before ? applyTerm(op::member, {whole->args[0], textTerm(Name(before->str() + path))})
                : applyTerm(op::member, {whole, textTerm(Name(path))});
}

Value asChosenDevice(const Value &value) {
  return isOpen(value)
             ? deviceValue(Placement::symbol(SymbolRole::DeviceChoice, value->origin, value->function))
             : value;
}

Value deviceIn(const Call &call, const Row &row, const Value &options) {
  return isOpen(options)
             ? asChosenDevice(entryOfOpen(call, row, options, scalarValue(textTerm(Name("device")))))
             : deviceValue(Placement::unknown());
}

namespace {

// A parameter of a module from outside; some buffers are numbers.
Value parameterOf(const Call &call, const Value &open, int rank) {
  const Term origin = applyTerm(op::member, {open->origin, textTerm("parameters")});
  ValueData each = *call.machine.memory.symbolic("at::Tensor", origin, open->function, SymbolRole::Module);
  each.rank = rank;
  return isPlaced(open) ? placedAt(open, makeValue(std::move(each))) : makeValue(std::move(each));
}

} // namespace

Value attributeOfOpen(const Call &call, const Row &row, const Value &open, const std::string &name) {
  const Name text(open->function.str() + "." + name);
  if (name == "grad") // only tensors have one, and it is where they are
    return leftOutOr(call.machine.memory.symbolic("at::Tensor", open->origin, text));
  const Value written = row.store.get(writtenTo(call, open));
  if (open->type == outputType)
    return read(call, row, open, Name(name), applyTerm(op::element, {open->origin, textTerm(Name(name))}),
                text.str());
  const bool isOfModule = open->type == moduleType || open->type == partType;
  if (name == "weight" && isOfModule && !(written && written->fields.count(Name(name))))
    return parameterOf(call, open, someRank);
  // Where it keeps that is the object's affair, as it is with the private members of C++.
  const Value kept = read(call, row, open, Name(name),
                          applyTerm(op::inner, {open->origin, textTerm(Name(name))}), text.str());
  return isOfModule && isOpen(kept) && kept->type.empty() ? typed(kept, partType) : kept;
}

Value attributeOfGiven(const Value &object, const std::string &name) {
  return openValue(applyTerm(op::inner, {object->origin->args[0], textTerm(Name(name))}),
                   Name(object->function.str() + "." + name));
}

Value entryOfOpen(const Call &call, const Row &row, const Value &open, const Value &key) {
  if (is(key, ValueKind::Record)) // a slice holds what the whole holds
    return row.store.get(writtenTo(call, open)) ? unknownValue() : open;
  const Name field = fieldOf(row, key);
  if (field == anyEntryField && isOpen(key)) // a caller says which, and it is one
    return read(call, row, open, field, applyTerm(op::element, {open->origin, key->origin}),
                open->function.str() + "[" + key->function.str() + "]", open->type);
  if (field == anyEntryField)
    return elementOfOpen(call, row, open);
  if (!is(key, ValueKind::Scalar)) // a device: what is kept for it may be there
    return unknownValue();
  const Term at = row.resolve(key->term);
  const std::string written = devicetidy::textOf(at) ? "\"" + devicetidy::textOf(at)->str() + "\""
                              : constantOf(at)       ? std::to_string(*constantOf(at))
                                                     : std::string("i");
  return read(call, row, open, field, applyTerm(op::element, {open->origin, at}),
              open->function.str() + "[" + written + "]", open->type);
}

Value elementOfOpen(const Call &call, const Row &row, const Value &open) {
  const Value written = row.store.get(writtenTo(call, open));
  return written
             ? unknownValue()
             : read(call, row, open, anyEntryField, applyTerm(op::element, {open->origin, elementIndex()}),
                    open->function.str() + "[i]", open->type);
}

Value computedOfOpen(const Call &call, const Value &open) {
  // What it is computed from is the same, and so is the outcome.
  const Term outcome = applyTerm(op::kept, {call.machine.freshScalar(call)});
  const Term origin = applyTerm(op::element, {open->origin, outcome});
  return stepsTo(origin) > mostSteps || call.frame.function.isModel
             ? unknownValue()
             : openValue(origin, open->function, open->rank == someRank ? someRank : unknownRank);
}

void setAttributeOfOpen(const Call &call, Row &row, const Value &open, const std::string &name,
                        const Value &value) {
  write(call, row, open, Name(name), value);
}

void setEntryOfOpen(const Call &call, Row &row, const Value &open, const Value &key, const Value &value) {
  write(call, row, open, fieldOf(row, key), value);
}

Value typed(const Value &open, Name type) {
  ValueData data = *open;
  data.type = type;
  return makeValue(std::move(data));
}

Term lengthOfOpen(const Value &open) {
  return applyTerm(op::size, {applyTerm(op::call, {open->origin})}); // until the next iteration
}

Outcomes callOpenMethod(Call &call, Row row, const Value &open, const std::string &name, const Given &given) {
  if (!isOneOf(name, {"get", "items", "keys", "values", "index", "count"})) // it may become longer or shorter
    row.forgetConditions([&](Term term) { return contains(term, lengthOfOpen(open)); });
  const Value first = given.positional.empty() ? unknownValue() : given.positional[0].value;
  if (name == "get") { // an entry that may be missing, and what is there then says more than an annotation
    const bool hasOther = given.positional.size() > 1 && !is(given.positional[1].value, ValueKind::Tensor);
    const Value entry = entryOfOpen(call, row, hasOther ? typed(open, {}) : open, first);
    return done(row, is(entry, ValueKind::Tensor) ? leftOutOr(entry) : entry);
  }
  if (isOneOf(name, {"copy", "eval", "train", "requires_grad_", "float", "half", "double", "bfloat16"}))
    return done(row, open); // of a module, the same where it is
  if (name == "values")
    return done(row, allocated(call, row, "python::list", summaryOf({elementOfOpen(call, row, open)})));
  if (name == "items")
    return done(row, allocated(call, row, "python::list",
                               summaryOf({tupleValue({unknownValue(), elementOfOpen(call, row, open)})})));
  if (const bool isNamed = startsWith(name, "named_");
      name == "state_dict" ||
      isOneOf(name.substr(isNamed ? 6 : 0), {"parameters", "buffers"})) { // of a module
    const Value tensor = parameterOf(call, open, endsWith(name, "buffers") ? unknownRank : someRank);
    if (name == "state_dict")
      return done(row, allocated(call, row, dictType, recordValue(dictType, {{anyEntryField, tensor}})));
    return done(row, allocated(call, row, "python::list",
                               summaryOf({isNamed ? tupleValue({unknownValue(), tensor}) : tensor})));
  }
  if (const bool isNamed = startsWith(name, "named_");
      isOneOf(name.substr(isNamed ? 6 : 0), {"modules", "children"})) {
    const Term origin =
        applyTerm(op::element, {applyTerm(op::member, {open->origin, textTerm("modules")}), elementIndex()});
    const Value each = openValue(origin, Name(open->function.str() + " layer"), unknownRank, moduleType);
    return done(row, allocated(call, row, "python::list",
                               summaryOf({isNamed ? tupleValue({unknownValue(), each}) : each})));
  }
  if (name == "get_submodule" && open->type == moduleType)
    return done(row, typed(entryOfOpen(call, row, open, first), moduleType));
  if (isOneOf(name, {"get_parameter", "get_buffer"}) && open->type == moduleType)
    return done(row, parameterOf(call, open, someRank));
  if (isOneOf(name, {"startswith", "endswith", "lower", "upper", "strip", "split", "isdigit", "find"}))
    return done(row, answered(call, unknownValue())); // of a text
  const bool isOfTensors = isMethodOfTensors(call.machine, name);
  const bool mayWrite = !isOfTensors || endsWith(name, "_") || name == "add"; // of a set
  if (name != "keys" && mayWrite)
    write(call, row, open, anyEntryField, unknownValue());
  if (isOneOf(name, {"item", "numel", "nelement", "dim"}) || (name == "size" && !given.positional.empty()))
    return done(row, scalarValue(call.machine.freshScalar(call))); // of a tensor, or of an array
  if (const Value taken = asTensor(call, first); name == "log_prob" && is(taken, ValueKind::Tensor)) {
    row.guessed = true; // of a distribution, which takes it where it is
    return done(row, tensorValue(call.machine.memory.placementOf(row, taken), unknownRank,
                                 call.machine.memory.historyOf(row, taken)));
  }
  if (name == "pop")
    return done(row, entryOfOpen(call, call.row, open, first));
  // Of a tensor, it is one, as what the function does with it may show.
  return done(row, isOfTensors ? computedOfOpen(call, open) : unknownResult(call, row));
}

} // namespace python

Words pythonOpenWords() {
  return {{{"py_tensor", python::tensorWord},
           {"py_wide", python::wideWord},
           {"py_one", python::oneWord},
           {"py_asked", python::askedWord},
           {"py_dimensions", python::dimensionsWord},
           {"py_has_dimensions", python::hasDimensionsWord},
           {"py_length", python::lengthWord}},
          {},
          {}};
}

} // namespace devicetidy
