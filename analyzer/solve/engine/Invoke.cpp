//===- Invoke.cpp - calls: dispatch and summaries ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/models/bodies/Bodies.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/domain/Widening.h"
#include "analyzer/solve/engine/Decided.h"
#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/engine/Machine.h"
#include "analyzer/solve/engine/ModelBodies.h"

#include <algorithm>

namespace devicetidy {
namespace {

// What a model body can learn of the call that it is run for.
std::uint64_t siteHash(const Fact &site) {
  std::uint64_t hash = mix(textHash(site.type), mix(site.where.line, site.where.column));
  for (Name type : site.templateTypes)
    hash = mix(hash, textHash(type));
  for (std::int64_t number : site.templateNumbers)
    hash = mix(hash, static_cast<std::uint64_t>(number));
  return site.operands.empty() ? hash : mix(hash, textHash(site.operands[0].type));
}

Row withoutRegisters(Row row) {
  row.registers.clear();
  row.expressionEnded = false;
  row.iterations = nullptr;
  return row;
}

// A symbol that gets a new meaning: what was known of it is of the old one.
void forgetKnown(Row &row, Term symbol) {
  row.forgetConditions([&](Term term) { return contains(term, symbol); });
}

} // namespace

bool Machine::isNewMistake(Summary &summary, const Row &entry, const std::vector<Value> &inputs) {
  if (!summary.hasConflict || summary.origins.size() >= bounds::originsPerSummary)
    return false;
  std::uint64_t origins = 0;
  for (const Value &input : inputs)
    origins = mix(origins, originsIn(input));
  entry.store.forEach([&](RootId root, const Value &value) { origins ^= mix(root, originsIn(value)); });
  return summary.origins.insert(origins).second;
}

Outcomes Machine::invoke(const Frame &caller, const Fact &fact, Row row, const Function &callee, Address self,
                         std::vector<Value> args) {
  auto giveUp = [&](Bound bound, Value result = unknownValue()) {
    countHit(bound);
    havoc(row, callee, self, args);
    Outcomes outcomes;
    outcomes.push_back({std::move(row), std::move(result)});
    return outcomes;
  };
  if (caller.depth + 1 >= bounds::callDepth)
    return giveUp(Bound::CallDepth);
  if (factsRun > mostFacts)
    return giveUp(Bound::FactsOfEntry);
  const bool isBody = callee.isModel || program.function(callee.id) != &callee; // of a model, then
  const bool matters = isBody || usage.devicesMatter.count(callee.id) != 0;
  bool isWholeCall = true;
  for (std::size_t i = 0; i < args.size() && i < callee.locals.size(); ++i)
    isWholeCall &=
        !is(args[i], ValueKind::Unknown) || types.classOf(callee.locals[i].type) != TypeClass::Tensor;
  if (isWholeCall)
    enteredWhole.insert(&callee);
  const unsigned activations = active[&callee];
  // Deeper recursion adds nothing: what it returns is what the calls above return.
  if (activations > 0 && !matters)
    return giveUp(Bound::RecursionWithoutDevices);
  const bool isCounted = std::any_of(args.begin(), args.end(), [](const Value &arg) {
    return is(arg, ValueKind::Scalar) && constantOf(arg->term);
  });
  const unsigned deepest = isCounted ? bounds::countedRecursionDepth : bounds::recursionDepth;
  if (activations > 0 && (activations >= deepest || reactivations >= deepest)) {
    countHit(Bound::RecursionDepth);
    ++recursionsCut;
    return {};
  }
  Frame frame{callee, &caller, &fact, caller.depth + 1, self, 0, nullptr};
  if (isBody) {
    frame.site = caller.site ? caller.site : &fact;
    frame.user = caller.site ? caller.user : &caller;
    frame.fixedIteration = iterationOf(caller, row);
  }
  std::vector<Value> inputs = args;
  if (self.valid())
    inputs.push_back(addressValue(self));
  // A body may move what any variable of the program leads to: iterators follow their elements.
  Row entry = isBody ? withoutRegisters(row) : restrict(row, callee, inputs);
  const bool isWhole = isBody || tellsNumbersApart(callee);
  if (!isWhole) {
    entry.store = forgetNumbers(entry.store);
    entry.guessed = true;                 // which branches are taken is a guess from here on
    for (auto *values : {&args, &inputs}) // a text that the caller writes down says what is to be done
      for (std::size_t i = 0; i < values->size(); ++i)
        if (const Value &given = (*values)[i]; !is(given, ValueKind::Scalar) || !textOf(given->term))
          (*values)[i] = withoutNumbers(given, i + 1);
  }
  frame.entry = frame.before = &entry.store;
  std::uint64_t key = mix(textHash(callee.id), mix(entry.digest(), frame.depth));
  for (const Value &input : inputs)
    key = mix(key, input->hash);
  if (isBody)
    key = mix(key, mix(siteHash(*frame.site), frame.fixedIteration ? frame.fixedIteration->hash : 0));
  Summary *known = summaries.find(key);
  // Within a recursion a call does the same for as long as the same calls are under way.
  const std::uint64_t keyInRecursion = activations > 0 ? mix(key, activeHash) : key;
  if (!known && activations > 0)
    known = summaries.find(keyInRecursion);
  const std::size_t cutBefore = recursionsCut;
  const std::size_t conflictsBefore = definiteConflicts, firstConflict = solution.conflicts.size();
  Outcomes outcomes;
  if (known && !isNewMistake(*known, entry, inputs)) {
    outcomes = known->outcomes;
    if (activations > 0) {
      recursionsCut += known->hasCuts;
      definiteConflicts += known->hasDefiniteConflict;
    }
  } else {
    if (!isBody && !known && hasCostTooMuch(callee, matters)) {
      row.bounded |= spentByAll[&callee].mayFail; // then this call may never have returned
      return giveUp(matters ? Bound::Contexts : Bound::ContextsWithoutDevices,
                    notFollowed(types, callee, key));
    }
    Row start = entry;
    for (std::uint32_t i = 0; i < callee.paramCount && i < callee.locals.size(); ++i) {
      Value value = i < args.size() ? args[i] : unknownValue();
      if (!callee.locals[i].isReference && is(value, ValueKind::Null) &&
          types.classOf(callee.locals[i].type) == TypeClass::Record)
        value = unknownValue();
      start.store.set(memory.local(frame.depth, i, callee.locals[i]), std::move(value));
    }
    const std::uint64_t activeBefore = activeHash;
    activeHash += mix(textHash(callee.id), ++active[&callee]);
    reactivations += activations > 0;
    outcomes = runWithin(frame, std::move(start));
    reactivations -= activations > 0;
    --active[&callee];
    activeHash = activeBefore;
    std::vector<Row> rows;
    for (Outcome &outcome : outcomes) {
      memory.dropLocals(outcome.row, frame.depth);
      outcome.row.registers = {outcome.result};
      memory.collectGarbage(outcome.row, &entry.store);
      rows.push_back(std::move(outcome.row));
    }
    const Term phi = symbolTerm(Name("return " + callee.id.str()));
    solution.stats.rowsLeftOut += mergeRows(rows, 2, bounds::rowsPerOutcome, phi);
    outcomes.clear();
    for (Row &merged : rows) {
      Value result = merged.registers.empty() || !merged.registers[0] ? unknownValue() : merged.registers[0];
      merged.registers.clear();
      outcomes.push_back({std::move(merged), std::move(result)});
    }
    Summary notKept; // of a run that was cut short
    Summary &summary = factsRun > mostFacts ? notKept : summaries[keyInRecursion];
    summary.outcomes = outcomes;
    summary.hasCuts = recursionsCut > cutBefore;
    summary.hasDefiniteConflict = definiteConflicts > conflictsBefore;
    spentByAll[&callee].mayFail |= summary.hasDefiniteConflict;
    summary.hasConflict |=
        std::any_of(solution.conflicts.begin() + std::ptrdiff_t(firstConflict), solution.conflicts.end(),
                    [](const Conflict &each) { return each.level != Level::Latent; });
    isNewMistake(summary, entry, inputs);
    summary.isCut = activations == 0 && outcomes.empty() && summary.hasCuts && !summary.hasDefiniteConflict;
  }
  // No recursion of the program is without end: what was cut returns somewhere.
  if (known = summaries.find(key); outcomes.empty() && known && known->isCut)
    return giveUp(Bound::RecursionDepth);
  // A call that always fails at a device ends its caller too; an entry goes on with what it does next.
  if (outcomes.empty() && caller.depth == 0 && (definiteConflicts > conflictsBefore || failing.count(key))) {
    failing.insert(key);
    outcomes.push_back({std::move(row), unknownValue()});
    return outcomes;
  }
  if (outcomes.empty() && definiteConflicts > conflictsBefore)
    failing.insert(key);
  for (Outcome &outcome : outcomes) {
    overlay(caller, row, entry, outcome);
    outcome.row.guessed |= !isWhole; // no run may have taken this way
  }
  return outcomes;
}

// A call that is not followed may have changed what it was handed by reference, and its object.
void Machine::havoc(Row &row, const Function &callee, const Address &self, const std::vector<Value> &args) {
  for (std::uint32_t i = 0; i < callee.paramCount && i < args.size() && i < callee.locals.size(); ++i)
    if (callee.locals[i].isReference && !callee.locals[i].isConst && is(args[i], ValueKind::Address))
      memory.write(row, args[i]->address, unknownValue());
  if (self.valid() && !callee.isConst)
    forgetFields(row, self);
}

Value Machine::unknownResult(const Call &call) {
  static const Name script("torch::jit::Module");
  const Fact &fact = call.fact;
  if (fact.resultIsAddress && types.classOf(fact.type) == TypeClass::Tensor && program.function(fact.target))
    return addressValue({memory.outside(givenBy(call, std::nullopt), fact.type,
                                        Name(std::string(lastPart(fact.name.view())) + "()")),
                         nullptr});
  switch (types.classOf(fact.type)) {
  case TypeClass::Scalar:
  case TypeClass::String:
    return scalarValue(freshScalar(call));
  case TypeClass::Device: {
    Term id =
        applyTerm(op::chosenAt, {textTerm(fact.name), intTerm(fact.where.line), intTerm(fact.where.column)});
    return deviceValue(
        Placement::symbol(SymbolRole::DeviceChoice, id, "a device chosen at run time"),
        note(nullptr, StepKind::Chosen, fact.where, fact.name.str(), "a device chosen at run time"));
  }
  case TypeClass::Pointer:
    if (models::hasRole(fact.name.view(), "makes_host_memory"))
      return addressValue(allocate(call.row, call.frame, fact, types.inner(fact.type)));
    if (isHandle(fact.type) && program.function(fact.target))
      return memory.symbolic(fact.type, givenBy(call, std::nullopt),
                             Name(std::string(lastPart(fact.name.view())) + "()"));
    [[fallthrough]];
  case TypeClass::Holder: {
    const Name held = types.inner(fact.type);
    return types.isModule(held) || held == script ? unseenModule(call, held) : unknownValue();
  }
  case TypeClass::Record:
    return fact.type == script
               ? recordValue(script,
                             {{hidden::parameters, tensorValue(Placement::unknown(), someRank, nullptr)}})
               : unknownValue();
  default:
    return unknownValue();
  }
}

bool Machine::isHandle(Name type) const {
  return types.isPointer(type) && types.classOf(types.inner(type)) == TypeClass::Tensor;
}

Term Machine::givenBy(const Call &call, std::optional<std::size_t> i) const {
  std::vector<Term> parts{textTerm(call.fact.name), intTerm(i ? std::int64_t(*i) : -1)};
  for (std::size_t other = 0; other < call.fact.operands.size(); ++other) {
    const Value value = call.operand(other);
    const Address where = call.addressOf(other);
    if (other == i)
      continue;
    if (is(value, ValueKind::Scalar)) {
      const Term origin = memory.originOf(call.row.resolve(value->term));
      parts.push_back(origin ? origin : call.row.resolve(value->term));
    } else if (where.valid() && memory.info(where.root).origin) {
      parts.push_back(memory.info(where.root).origin);
    }
  }
  return applyTerm(op::written, std::move(parts));
}

// A module that something unknown has made or found: where it is is not known until it is moved.
Value Machine::unseenModule(const Call &call, Name type) {
  Row &row = call.row;
  const Address where = allocate(row, call.frame, call.fact, type);
  if (where.path) // one of many that a loop gets
    return unknownValue();
  const Term origin = applyTerm(op::pointee, {intTerm(where.root)});
  row.moves.erase(std::remove_if(row.moves.begin(), row.moves.end(),
                                 [&](const ModuleMove &move) { return contains(move.origin, origin); }),
                  row.moves.end());
  row.moves.push_back({origin, Placement::unknown(), nullptr});
  row.store.set(where.root, memory.symbolic(type, origin, "the module"));
  return addressValue(where);
}

// A call that is asked the same question again gives the same answer, until the next iteration of its loop.
Term Machine::freshScalar(const Call &call) const {
  std::vector<Term> parts{textTerm(call.fact.name)};
  bool stable = call.fact.hasObject || call.argCount() > 0;
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Value value = registerOf(call.row, call.fact.operands[i].reg);
    if (is(value, ValueKind::Address)) {
      Value pointed = memory.read(call.row, value->address);
      if (is(pointed, ValueKind::Scalar)) {
        parts.push_back(call.row.resolve(pointed->term));
        continue;
      }
      parts.push_back(applyTerm(
          op::address, {intTerm(value->address.root),
                        intTerm(static_cast<std::int64_t>(
                            (pointed->hash ^ (value->address.path ? value->address.path->hash : 0)) >> 1))}));
    } else if (is(value, ValueKind::Scalar)) {
      parts.push_back(call.row.resolve(value->term));
    } else if (is(value, ValueKind::Null)) {
      parts.push_back(intTerm(0));
    } else {
      stable = false;
    }
  }
  if (!stable)
    parts.push_back(applyTerm(op::once, {intTerm(call.fact.where.line), intTerm(call.fact.where.column)}));
  Term term = applyTerm(op::call, std::move(parts));
  // A question that a model body asks, about something that is not followed, or that has one answer.
  if (call.frame.site || isDecided(*this, call))
    term = guess(term);
  if (!stable)
    forgetKnown(call.row, term);
  return term;
}

// What a model written in Python does: what it asks of its values is asked at the call that the user wrote.
Outcomes Machine::evaluateAtSite(Frame &frame, Row &row, Fact fact) {
  fact.where = frame.site->where;
  for (Operand &operand : fact.operands)
    operand.where = frame.site->where;
  Call call{*this, frame, row, fact, fact.hasObject ? std::size_t(1) : std::size_t(0)};
  const ObservedCall observed(calls, call);
  return callLibrary(call);
}

Outcomes Machine::evaluateCall(Frame &frame, Row &row, const Fact &fact) {
  Call call{*this, frame, row, fact, fact.hasObject || fact.isIndirect ? std::size_t(1) : std::size_t(0)};
  static const Name rangeTest("__range_has_next"), rangeNext("__range_next");
  if (fact.name == rangeTest || fact.name == rangeNext)
    return library.hooks.rangeCall(call);
  std::vector<Value> args;
  for (std::size_t i = call.first; i < fact.operands.size(); ++i)
    args.push_back(registerOf(row, fact.operands[i].reg));
  if (frame.site && isLateBound(fact))
    return evaluateAtSite(frame, row, fact);
  if (frame.site && !frame.function.isModel) {
    const Function *body = models::bodyWithId(fact.target);
    return body ? invoke(frame, fact, row, *body, fact.hasObject ? call.addressOf(0) : Address(),
                         std::move(args))
                : runPrimitive(call);
  }
  const ObservedCall observed(calls, call);
  if (fact.isLaunch) {
    library.hooks.launch(call);
    return call.done(unknownResult(call));
  }
  if (fact.isIndirect)
    return library.hooks.callValue(call, row, call.operand(0), call.forwardedFrom(0),
                                   fact.operands[0].isAddress ? call.addressOf(0) : Address());
  const Function *const declared = fact.target.empty() ? nullptr : program.function(fact.target);
  const Function *callee = declared;
  Address self = fact.hasObject ? call.addressOf(0) : Address();
  if (fact.isVirtual && fact.hasObject && (callee || program.overriders.count(fact.target))) {
    std::vector<const Function *> candidates;
    if (const Function *exact = resolveVirtual(row, fact, candidates))
      return invoke(frame, fact, row, *exact, self, std::move(args));
    Outcomes outcomes = callOverriders(frame, fact, row, candidates, args);
    if (!outcomes.empty())
      return outcomes;
    callee = nullptr;
  }
  if (callee && callee->hasBody) {
    if (callee->isLambda) {
      // Called through its closure object: captures are fields of that object.
      Value closure = call.operand(0);
      if (is(closure, ValueKind::Function)) // of a generic lambda, the instance that is called
        return library.hooks.callValue(call, row, functionValue(callee->id, closure->fields),
                                       call.forwardedFrom(0), self);
    }
    return invoke(frame, fact, row, *callee, self, std::move(args));
  }
  if (declared && !declared->hasBody)
    library.hooks.callUnseen(call);
  if (callee)
    havoc(row, *callee, self, args);
  library.hooks.beforeCall(call);
  Outcomes outcomes = callLibrary(call);
  for (Outcome &outcome : outcomes)
    library.hooks.afterCall(*this, frame, fact, outcome.row);
  return outcomes;
}

const std::vector<ModelName> &Machine::modelsOf(const Fact &fact) {
  const Name object = fact.hasObject && !fact.operands.empty() ? fact.operands[0].type : Name();
  const auto [entry, isNew] = modelNamesOf.try_emplace({fact.name, object});
  if (isNew)
    entry->second = modelNames(types, fact.name, object);
  return entry->second;
}

const std::vector<ModelName> &Machine::constructorsOf(Name type) {
  const auto [entry, isNew] = modelNamesOf.try_emplace({Name(), type});
  if (isNew)
    entry->second = constructorNames(types, type);
  return entry->second;
}

const std::map<Name, std::vector<ModelName>> &Machine::modelsByValue(Name function) {
  const auto [entry, isNew] = kindModels.try_emplace(function);
  if (isNew)
    entry->second = kindNames(function);
  return entry->second;
}

Outcomes Machine::callLibrary(Call &call) {
  if (std::optional<Outcomes> outcomes = answer(call))
    return std::move(*outcomes);
  ++solution.stats.unknownCalls[call.fact.name.str()];
  forgetWritten(call);
  return call.done(unknownResult(call));
}

// What has no model may write through the addresses it gets (`stream >> n`, scanf): numbers through any, the
// rest where the callee is given it to write to. Objects of the program keep what the library cannot know of,
// and modules keep their parameters.
void Machine::forgetWritten(Call &call) {
  const bool isStandard = isDecided(*this, call);
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Address where = call.addressOf(i);
    if (!where.valid())
      continue;
    library.hooks.forgetOperand(call, i);
    const Operand &operand = call.fact.operands[i];
    Value value = memory.read(call.row, where);
    // A pointer that is passed by reference: what it leads to.
    if (operand.isAddress && !operand.isWritable && types.isPointer(operand.type) &&
        is(value, ValueKind::Address)) {
      where = value->address;
      value = memory.read(call.row, where);
    }
    Term written = applyTerm(op::written, {intTerm(call.fact.where.line), intTerm(call.fact.where.column),
                                           intTerm(std::int64_t(i))});
    if (isStandard)
      written = guess(written);
    const bool isNumbers = is(value, ValueKind::List) && !isSummary(value) &&
                           std::all_of(value->elements.begin(), value->elements.end(),
                                       [](const Value &element) { return is(element, ValueKind::Scalar); });
    const bool isObject = call.fact.hasObject && i == 0;
    if (is(value, ValueKind::Scalar))
      memory.write(call.row, where, scalarValue(written));
    else if (isNumbers)
      memory.write(call.row, where, summaryList(value->type, {scalarValue(written)}));
    else if (!operand.isWritable || types.isModule(value->type) || types.isModule(operand.type))
      continue;
    else if (types.isProject(value->type) || types.isProject(operand.type)) {
      if (!isObject)
        forgetFields(call.row, where);
    } else if (const Name declared = memory.typeAt(call.row, where); isHandle(declared))
      memory.write(call.row, where,
                   memory.symbolic(declared, givenBy(call, i),
                                   where.path ? where.path->field : memory.info(where.root).text));
    else
      memory.write(call.row, where, unknownValue());
    forgetKnown(call.row, written);
  }
}

std::vector<Row> Machine::stepCall(Frame &frame, const Fact &fact, Row row) {
  std::vector<Row> rows;
  for (Outcome &outcome : evaluateCall(frame, row, fact)) {
    // In an entry every operation is looked at; elsewhere a failed row ends here.
    if (outcome.row.failed && frame.depth > 0)
      continue;
    outcome.row.failed = false;
    setRegister(outcome.row, fact.result, std::move(outcome.result));
    rows.push_back(std::move(outcome.row));
  }
  return rows;
}

} // namespace devicetidy
