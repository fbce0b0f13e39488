//===- Archives.cpp - what is saved and loaded --------------------===//
//
// Without a device of its own a load puts tensors where they were when they were saved. That is known where
// the same stream, archive or file was written before on the row: a copy through a stream, a best model that
// is read back. Source: torch/serialize.h and serialize/input-archive.h.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/torch/Archives.h"

#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/OptimizerState.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;

// Where it is kept what the archive, stream or file of operand `i` holds: a tensor that stands for all in it,
// or the list that was saved.
Address contentsSlot(Call &call, std::size_t i) {
  if (i >= call.fact.operands.size())
    return {};
  const Value archive = call.operand(i);
  if (is(archive, ValueKind::Scalar)) {
    const Term path = call.row.resolve(archive->term);
    const std::optional<Name> text = textOf(path);
    const Name file("archive " + (text ? text->str() : std::to_string(path->hash)));
    return {call.machine.memory.global(file, {}, {}), nullptr};
  }
  const Address where = call.addressOf(i);
  return where.valid() ? where.field(hidden::saved) : Address();
}

// Nothing is known of what others have saved: counters without a dimension are among it.
const Value &unknownContents() {
  static const Value unknown = tensorValue(Placement::unknown(), unknownRank, nullptr);
  return unknown;
}

Value kept(const Call &call, const Address &slot) {
  const Value held = slot.valid() ? call.machine.memory.read(call.row, slot) : unknownValue();
  return is(held, ValueKind::Tensor) || is(held, ValueKind::List) ? held : unknownContents();
}

// Has the program at hand written nothing there, as far as it was followed?
bool isFromOthers(const Call &call, const Address &slot) {
  return !slot.valid() || is(call.machine.memory.read(call.row, slot), ValueKind::Unknown);
}

void keep(Call &call, const Address &slot, const Value &contents) {
  if (slot.valid())
    call.machine.memory.write(call.row, slot, contents);
}

// One tensor for all that `contents` are.
Value summarised(const Value &contents) {
  if (!is(contents, ValueKind::List))
    return contents;
  Value result;
  for (const auto *part : {&contents->elements, &contents->summary})
    for (const Value &each : *part)
      result = result ? joinValues(result, each, nullptr) : each;
  return result && is(result, ValueKind::Tensor) ? result : unknownContents();
}

// Streams and archives hold what was written before as well; a file is written anew.
void add(Call &call, std::size_t archive, const Value &saved) {
  const Address slot = contentsSlot(call, archive);
  const Value before = slot.valid() ? call.machine.memory.read(call.row, slot) : unknownValue();
  const bool isFile = is(call.operand(archive), ValueKind::Scalar);
  const bool isFirst = isFile || (!is(before, ValueKind::Tensor) && !is(before, ValueKind::List));
  keep(call, slot, isFirst ? saved : joinValues(summarised(before), summarised(saved), nullptr));
}

Value snapshot(const Call &call, const Value &tensor) {
  return is(tensor, ValueKind::Tensor) ? call.machine.memory.snapshot(call.row, tensor) : unknownContents();
}

// What operand `i`, a module, an optimizer, a tensor or a list of them, is in the archive.
Value savedAs(const Call &call, std::size_t i) {
  const Machine &machine = call.machine;
  const Value value = call.operand(i);
  if (isOptimizer(value))
    return tensorValue(stateDevice(call, value), someRank, nullptr);
  const Address module = moduleOf(call, value, call.addressOf(i));
  if (module.valid() && !is(value, ValueKind::Tensor))
    return tensorValue(modulePlacement(machine, call.row, module), someRank, nullptr);
  if (is(value, ValueKind::Tensor))
    return snapshot(call, value);
  if (!is(value, ValueKind::List))
    return unknownContents();
  ValueData list = *value;
  for (std::vector<Value> *part : {&list.elements, &list.summary})
    for (Value &each : *part)
      each = snapshot(call, each);
  return makeValue(std::move(list));
}

// `contents` on `placement`, with the history of their loading.
Value placed(const Value &contents, const Placement &placement, const History &history) {
  if (!is(contents, ValueKind::List))
    return tensorValue(placement, contents->rank, history);
  ValueData list = *contents;
  for (std::vector<Value> *part : {&list.elements, &list.summary})
    for (Value &each : *part)
      each = tensorValue(placement, each->rank, history);
  return makeValue(std::move(list));
}

// The device a load is given.
std::optional<Placement> givenDevice(Call &call, std::size_t archive) {
  for (std::size_t i = archive + 1; i < call.fact.operands.size(); ++i) {
    const Value value = call.operand(i);
    if (is(value, ValueKind::Device))
      return call.machine.concrete(call.row, value->placement);
    if (!is(value, ValueKind::Null)) // an optional that may hold one
      return Placement::unknown();
  }
  return std::nullopt;
}

History loaded(const Call &call, std::size_t i, const Placement &placement) {
  return historyOfLoad(call, i < call.fact.operands.size() ? call.fact.operands[i].text.str() : "",
                       placement);
}

// torch::load(x, archive[, device]).
std::optional<Outcomes> load(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const std::optional<Placement> given = givenDevice(call, 1);
  Placement placement = given ? *given : summarised(kept(call, contentsSlot(call, 1)))->placement;
  if (!given && !placement.isKnown())
    placement = placementOfSaved(call);
  if (isAbsent(call.row, placement))
    return Outcomes();
  const History history = loaded(call, 0, placement);
  const Address target = call.addressOf(0);
  const Value held = call.operand(0), contents = kept(call, contentsSlot(call, 1));
  const Name type = call.fact.operands.empty() ? Name() : call.fact.operands[0].type;
  if (isOptimizer(held))
    loadState(call, target, placement, history);
  else if (is(held, ValueKind::Address))
    moveModule(machine, call.row, held->address, placement, history);
  else if (is(held, ValueKind::Record) && machine.types.isModule(held->type))
    moveModule(machine, call.row, target, placement, history);
  else if (target.valid() && machine.types.classOf(type) == TypeClass::Tensor)
    machine.memory.write(call.row, target, placed(summarised(contents), placement, history));
  else if (target.valid() && machine.types.classOf(type) == TypeClass::List)
    machine.memory.write(call.row, target,
                         is(contents, ValueKind::List)
                             ? placed(contents, placement, history)
                             : summaryList(type, {placed(contents, placement, history)}));
  return call.done(unknownValue());
}

// load(archive) of a module or optimizer.
std::optional<Outcomes> loadObject(Call &call, const Effect &) {
  const Placement placement = summarised(kept(call, contentsSlot(call, call.first)))->placement;
  if (isOptimizer(call.object()))
    loadState(call, call.objectAddress(), placement, loaded(call, 0, placement));
  else if (call.objectAddress().valid())
    moveModule(call.machine, call.row, call.objectAddress(), placement, loaded(call, 0, placement));
  return call.done(unknownValue());
}

// load_from() of an InputArchive.
std::optional<Outcomes> loadArchive(Call &call, const Effect &) {
  const Address slot = contentsSlot(call, call.first);
  const Value contents = summarised(kept(call, slot));
  const std::optional<Placement> given = givenDevice(call, call.first);
  const Placement placement = given                      ? *given
                              : isFromOthers(call, slot) ? placementOfSaved(call)
                                                         : contents->placement;
  if (isAbsent(call.row, placement))
    return Outcomes();
  keep(call, contentsSlot(call, 0), tensorValue(placement, contents->rank, nullptr));
  return call.done(unknownValue());
}

// read() and try_read() of an InputArchive.
std::optional<Outcomes> readArchive(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const std::size_t into = call.first + 1;
  const Address target = call.argCount() > 1 ? call.addressOf(into) : Address();
  if (target.valid() && machine.types.classOf(call.fact.operands[into].type) == TypeClass::Tensor) {
    const Value contents = summarised(kept(call, contentsSlot(call, 0)));
    // Archives hold numbers beside tensors: a number is told by what was there before.
    const Value before = call.operand(into);
    const bool wasNumber = is(before, ValueKind::Tensor) && machine.memory.rankOf(call.row, before) == 0;
    const int rank = wasNumber ? 0 : contents->placement.isKnown() ? contents->rank : unknownRank;
    machine.memory.write(call.row, target,
                         tensorValue(contents->placement, rank, loaded(call, into, contents->placement)));
  }
  return call.done(machine.unknownResult(call));
}

// torch::save(x, archive), and save(archive) of a module or an optimizer.
std::optional<Outcomes> save(Call &call, const Effect &) {
  if (call.fact.operands.size() > 1)
    add(call, 1, savedAs(call, 0));
  return call.done(call.machine.unknownResult(call));
}

// save_to() of an OutputArchive.
std::optional<Outcomes> saveArchive(Call &call, const Effect &) {
  if (call.argCount() > 0)
    add(call, call.first, kept(call, contentsSlot(call, 0)));
  return call.done(call.machine.unknownResult(call));
}

// write() of an OutputArchive.
std::optional<Outcomes> writeArchive(Call &call, const Effect &) {
  if (call.argCount() > 1)
    add(call, 0, savedAs(call, call.first + 1));
  return call.done(call.machine.unknownResult(call));
}

// str() of a stream is a text that holds what was saved into the stream.
std::optional<Outcomes> streamText(Call &call, const Effect &) {
  if (call.argCount() > 0) {
    const Value text = call.arg(0);
    if (const auto held = text->fields.find(hidden::saved); held != text->fields.end())
      keep(call, contentsSlot(call, 0), held->second);
    else
      forgetSaved(call, 0);
    return call.done(call.machine.unknownResult(call));
  }
  const Address slot = contentsSlot(call, 0);
  const Value held = slot.valid() ? call.machine.memory.read(call.row, slot) : unknownValue();
  if (!is(held, ValueKind::Tensor) && !is(held, ValueKind::List))
    return call.done(call.machine.unknownResult(call));
  return call.done(recordValue(call.resultType(), {{hidden::saved, held}}));
}

// A stream that is made from a text that another stream gave holds the same.
std::optional<Outcomes> makeStream(const Making &making, const Effect &) {
  const Value text = making.arg(0);
  const auto held = text->fields.find(hidden::saved);
  if (held == text->fields.end())
    return std::nullopt;
  return making.done(recordValue(making.type, {*held}));
}

} // namespace

Placement placementOfSaved(const Call &call) {
  const Location &where = call.fact.where;
  const Term load = applyTerm(op::savedBefore,
                              {textTerm(call.frame.function.id), intTerm(where.line), intTerm(where.column)});
  return Placement::symbol(SymbolRole::Saved, load, "where it was saved");
}

History historyOfLoad(const Call &call, const std::string &subject, const Placement &placement) {
  return call.machine.note(nullptr, StepKind::Loaded, call.fact.where, subject,
                           isSaved(placement) ? std::string() : placement.describe());
}

void forgetSaved(Call &call, std::size_t i) {
  if (call.fact.operands.size() == 1)
    return;
  const Address where = call.addressOf(i);
  const Value stream = call.machine.memory.read(call.row, where);
  if (is(stream, ValueKind::Record) && stream->fields.count(hidden::saved))
    keep(call, where.field(hidden::saved), unknownContents());
}

Words archiveWords() {
  return {{{"load", load},
           {"load_object", loadObject},
           {"load_archive", loadArchive},
           {"read_archive", readArchive},
           {"save", save},
           {"save_archive", saveArchive},
           {"write_archive", writeArchive},
           {"stream_text", streamText}},
          {},
          {{"stream", makeStream}}};
}

} // namespace devicetidy
