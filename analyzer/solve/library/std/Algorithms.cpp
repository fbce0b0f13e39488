//===- Algorithms.cpp - library functions that run the program's own code ---===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/Devices.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy {
namespace {

const Name insertedField("@list"); // of an insert iterator: the list it adds to

// What a run over the elements of a list gives: the rows, and the callable's result for each element that was
// run by itself (one, for any element, when the list is not known).
struct Run {
  Row row;
  std::vector<Value> results;
};

struct Elements {
  Address where;
  bool isUnrolled = false;
  std::vector<Term> indices;
};

// How many elements of its list a range leaves out at its front, as far as the text of its iterator tells:
// "v.begin()", "v.begin() + 1", "std::next(v.begin())".
std::optional<std::size_t> skippedBy(const Operand &iterator) {
  std::string_view text = iterator.text.view();
  std::size_t skipped = 0;
  if (constexpr std::string_view next = "std::next("; startsWith(text, next) && endsWith(text, "())")) {
    text = text.substr(next.size(), text.size() - next.size() - 1);
    skipped = 1;
  } else if (const std::size_t plus = text.find(" + "); plus != std::string_view::npos) {
    const std::string_view number = text.substr(plus + 3);
    if (number.empty() || number.size() > 2 || number.find_first_not_of("0123456789") != number.npos)
      return std::nullopt;
    skipped = static_cast<std::size_t>(std::atoi(std::string(number).c_str()));
    text = text.substr(0, plus);
  }
  const bool isStart = (endsWith(text, "begin()") && text.find_first_of("+-*?, ") == text.npos) ||
                       startsWith(text, "std::begin(");
  return isStart ? std::optional<std::size_t>(skipped) : std::nullopt;
}

// The elements the range of operand `i` stands for: each of a few known ones, else one for all of them.
Elements elementsOf(const Call &call, std::size_t i, const Address &where) {
  Elements elements{where, false, {}};
  const Value list = call.machine.memory.read(call.row, where);
  const std::optional<std::size_t> skipped = skippedBy(call.fact.operands[i]);
  if (skipped && is(list, ValueKind::List) && !isSummary(list) &&
      list->elements.size() <= bounds::forksPerRead) {
    elements.isUnrolled = true;
    for (std::size_t at = *skipped; at < list->elements.size(); ++at)
      elements.indices.push_back(intTerm(static_cast<std::int64_t>(at)));
    return elements;
  }
  elements.indices.push_back(
      applyTerm("loop", {symbolTerm(Name("algorithm at " + std::to_string(call.fact.where.line)))}));
  return elements;
}

// "parts" of "parts.begin()" and "std::next(parts.begin())".
std::string rangeText(const Call &call) {
  const std::string &text = call.fact.operands[0].text.str();
  const std::size_t from = text.rfind('(', text.rfind('.')) + 1;
  return text.substr(from, text.rfind('.') - from);
}

// One call of the algorithm's function: what it gives for `element`, after `before`.
using Apply = std::function<Outcomes(Call &, Row, const Argument &element, const Value &before)>;

// Runs `apply` over the elements in turn; `start` is what the first is applied after, and each result that
// of the next.
std::vector<Run> runOver(Call &call, const Elements &elements, const Value &start, const Apply &apply) {
  std::vector<Run> current{{call.row, {}}};
  for (Term index : elements.indices) {
    std::vector<Run> next;
    for (const Run &run : current) {
      const Address element = elements.where.element(index);
      Row row = run.row;
      Call inRow{call.machine, call.frame, row, call.fact, call.first};
      const Argument argument{call.machine.memory.read(row, element), element,
                              Name("an element of " + rangeText(call))};
      for (Outcome &outcome : apply(inRow, row, argument, run.results.empty() ? start : run.results.back())) {
        Run extended{std::move(outcome.row), run.results};
        extended.results.push_back(std::move(outcome.result));
        next.push_back(std::move(extended));
      }
    }
    if (!isWithin(next.size(), bounds::rowsPerOutcome, Bound::RowsOfAlgorithm))
      next.resize(bounds::rowsPerOutcome);
    current = std::move(next);
  }
  return current;
}

Outcomes lastResults(std::vector<Run> runs, const Value &whenEmpty) {
  Outcomes outcomes;
  for (Run &run : runs)
    outcomes.push_back({std::move(run.row), run.results.empty() ? whenEmpty : run.results.back()});
  return outcomes;
}

// The list that iterator argument `i` stands for.
Address rangeAt(const Call &call, std::size_t i) {
  Value iterator = registerOf(call.row, call.fact.operands[i].reg);
  if (call.fact.operands[i].isAddress && is(iterator, ValueKind::Address))
    if (Value inside = call.machine.memory.read(call.row, iterator->address); is(inside, ValueKind::Address))
      iterator = inside;
  return is(iterator, ValueKind::Address) ? iterator->address : Address();
}

Outcomes forEach(Call &call, const Value &callable) {
  const Address where = rangeAt(call, 0);
  if (!where.valid())
    return call.done(unknownValue());
  const Apply apply = [&](Call &inRow, Row row, const Argument &element, const Value &) {
    return callValue(inRow, std::move(row), callable, {element});
  };
  Outcomes outcomes =
      lastResults(runOver(call, elementsOf(call, 0, where), unknownValue(), apply), unknownValue());
  if (lastPart(call.fact.name.view()) == "find_if") // an iterator stands for its container
    for (Outcome &outcome : outcomes)
      outcome.result = addressValue(where);
  return outcomes;
}

// The list `target` after `results` were written over it, or added to it.
Value written(const Value &target, const std::vector<Value> &results, bool adds, bool isUnrolled) {
  const bool isPart = !adds && results.size() < target->elements.size(); // which part, nobody knows
  const bool isListed = isUnrolled && !isPart && !(adds && isSummary(target));
  std::vector<Value> all;
  if (adds || isPart)
    all = isSummary(target) ? target->summary : target->elements;
  for (const Value &result : results)
    all.push_back(isUnrolled ? result : generalise(result));
  return isListed ? listValue(target->type, std::move(all)) : summaryList(target->type, std::move(all));
}

// The list at `to` after `runs`, each with what it gave.
Outcomes writeResults(Call &call, std::vector<Run> runs, const Address &to, bool adds, bool isUnrolled) {
  Outcomes outcomes;
  for (Run &run : runs) {
    const Value target = call.machine.memory.read(run.row, to);
    if (is(target, ValueKind::List))
      call.machine.memory.write(run.row, to, written(target, run.results, adds, isUnrolled));
    outcomes.push_back({std::move(run.row), unknownValue()});
  }
  return outcomes;
}

// The list that an output iterator, argument `i`, writes to, and whether it adds to it.
std::pair<Address, bool> outputAt(const Call &call, std::size_t i) {
  const Value out = call.operand(i);
  const bool adds = is(out, ValueKind::Record) && out->fields.count(insertedField);
  return {adds ? out->fields.at(insertedField)->address : rangeAt(call, i), adds};
}

// copy(begin, end, out) and its relatives, which take some of the elements or change their order.
std::optional<Outcomes> copyElements(Call &call, bool inOrder) {
  const Address from = rangeAt(call, 0);
  const auto [to, adds] = outputAt(call, 2);
  const Value source = from.valid() ? call.machine.memory.read(call.row, from) : unknownValue();
  if (!is(source, ValueKind::List) || !to.valid())
    return std::nullopt; // pointers into memory
  const Elements elements = elementsOf(call, 0, from);
  std::vector<Value> copied = isSummary(source) ? source->summary : source->elements;
  if (elements.isUnrolled)
    copied.erase(copied.begin(), copied.end() - static_cast<std::ptrdiff_t>(elements.indices.size()));
  return writeResults(call, {{call.row, std::move(copied)}}, to, adds, inOrder && elements.isUnrolled);
}

// transform(begin, end, [begin of a second range,] out, f): `out` is the start of a list, or adds to one.
Outcomes transform(Call &call, const Value &callable) {
  const Address from = rangeAt(call, 0);
  const bool isOfTwo = call.argCount() == 5;
  const Address second = isOfTwo ? rangeAt(call, 2) : Address();
  if (!from.valid() || (call.argCount() != 4 && !second.valid()))
    return call.done(unknownValue());
  const std::size_t last = call.argCount() - 2;
  const auto [to, adds] = outputAt(call, last);
  Elements elements = elementsOf(call, 0, from);
  if (isOfTwo && !elements.isUnrolled) // as many as there are in the range of which it is known
    if (Elements others = elementsOf(call, 2, second); others.isUnrolled)
      elements = {from, true, std::move(others.indices)};
  const Apply apply = [&](Call &inRow, Row row, const Argument &element, const Value &) {
    std::vector<Argument> args{element};
    if (isOfTwo) {
      const Address other = second.element(element.address.path->index);
      args.push_back({call.machine.memory.read(row, other), other, Name("an element of the second range")});
    }
    return callValue(inRow, std::move(row), callable, args);
  };
  return writeResults(call, runOver(call, elements, unknownValue(), apply), to, adds, elements.isUnrolled);
}

// generate(begin, end, f): every element becomes what f() gives.
Outcomes generate(Call &call, const Value &callable) {
  const Address to = rangeAt(call, 0);
  if (!to.valid())
    return call.done(unknownValue());
  const Elements elements = elementsOf(call, 0, to);
  const Apply apply = [&](Call &inRow, Row row, const Argument &, const Value &) {
    return callValue(inRow, std::move(row), callable, {});
  };
  return writeResults(call, runOver(call, elements, unknownValue(), apply), to, /*adds=*/false,
                      elements.isUnrolled);
}

// generate_n(out, count, f): how many there are does not matter.
Outcomes generateSome(Call &call, const Value &callable) {
  const auto [to, adds] = outputAt(call, 0);
  if (!to.valid())
    return call.done(unknownValue());
  std::vector<Run> runs;
  for (Outcome &outcome : callValue(call, call.row, callable, {}))
    runs.push_back({std::move(outcome.row), {std::move(outcome.result)}});
  return writeResults(call, std::move(runs), to, adds, /*isUnrolled=*/false);
}

// accumulate and reduce: the operator is + unless one is given.
Outcomes accumulate(Call &call) {
  const Address where = rangeAt(call, 0);
  if (!where.valid() || call.argCount() < 3)
    return call.done(unknownValue());
  const Value operation = call.argCount() > 3 ? call.arg(3) : libraryFunction("at::operator+");
  const Name initial = call.fact.operands[2].text;
  const Apply apply = [&](Call &inRow, Row row, const Argument &element, const Value &sum) {
    return callValue(inRow, std::move(row), operation, {{sum, {}, initial}, element});
  };
  if (!is(call.arg(2), ValueKind::Tensor))
    return call.done(call.machine.unknownResult(call));
  return lastResults(runOver(call, elementsOf(call, 0, where), call.arg(2), apply), call.arg(2));
}

const Name savedField("@saved");
const Name savedDataField("saved_data");

// Runs backward() of an autograd::Function for its findings: gradients are where the outputs are.
void runBackward(Call &call, Name type, const Row &after, const Address &context, const Value &output) {
  Machine &machine = call.machine;
  const Function *backward = findMethod(machine, type, "backward");
  std::vector<Value> outputs;
  machine.collectTensors(after, output, outputs);
  if (!backward || outputs.empty())
    return;
  Row row = after;
  Call inRow{machine, call.frame, row, call.fact, call.first};
  std::vector<Value> gradients;
  for (const Value &tensor : outputs)
    gradients.push_back(tensorValue(machine.memory.placementOf(row, tensor), tensor->rank,
                                    machine.memory.historyOf(row, tensor)));
  std::vector<Argument> args{{addressValue(context), context},
                             {listValue("std::vector", std::move(gradients)), {}}};
  invokeForwarded(inRow, row, *backward, {}, args);
}

// autograd::Function<T>::apply(args...) runs T::forward(ctx, args...).
Outcomes applyFunction(Call &call) {
  Machine &machine = call.machine;
  for (Name type : call.fact.templateTypes)
    if (const Function *forward = findMethod(machine, type, "forward")) {
      Row row = call.row;
      const Address context =
          machine.allocate(row, call.frame, call.fact, "torch::autograd::AutogradContext");
      machine.memory.write(row, context.field(savedDataField), recordValue("ska::flat_hash_map"));
      std::vector<Argument> args{{addressValue(context), context}};
      for (std::size_t i = 0; i < call.argCount(); ++i)
        args.push_back(call.forwarded(i));
      const std::size_t conflicts = machine.solution.conflicts.size();
      Outcomes outcomes = invokeForwarded(call, std::move(row), *forward, {}, args);
      // What fails forward never comes to its backward.
      if (machine.solution.conflicts.size() == conflicts)
        for (const Outcome &outcome : outcomes)
          runBackward(call, type, outcome.row, context, outcome.result);
      return outcomes;
    }
  return call.done(unknownValue());
}

std::optional<Outcomes> modelContext(Call &call, std::string_view method) {
  const Address context = call.objectAddress();
  if (method == "save_for_backward") {
    call.machine.memory.write(call.row, context.field(savedField), call.arg(0));
    return call.done(unknownValue());
  }
  if (method == "get_saved_variables")
    return call.done(call.machine.memory.read(call.row, context.field(savedField)));
  return std::nullopt;
}

} // namespace

std::optional<Outcomes> modelAlgorithms(Call &call) {
  std::string_view name = call.fact.name.view();
  if (name == "torch::autograd::Function::apply")
    return applyFunction(call);
  if (startsWith(name, "torch::autograd::AutogradContext::") && call.fact.hasObject)
    return modelContext(call, lastPart(name));
  if (name == "std::back_inserter" || name == "std::inserter" || name == "std::front_inserter")
    return call.done(
        recordValue("std::back_insert_iterator", {{insertedField, addressValue(call.addressOf(0))}}));
  if (name == "std::accumulate" || name == "std::reduce")
    return accumulate(call);
  if (call.argCount() < 3)
    return std::nullopt;
  const Value callable = call.arg(call.argCount() - 1);
  if (isOneOf(name, {"std::for_each", "std::for_each_n", "std::all_of", "std::any_of", "std::none_of",
                     "std::find_if"}))
    return forEach(call, callable);
  if (isOneOf(name, {"std::copy", "std::move", "std::copy_n", "std::sample", "std::reverse_copy"}))
    return copyElements(call, name == "std::copy" || name == "std::move");
  if (name == "std::transform")
    return transform(call, callable);
  if (name == "std::generate_n")
    return generateSome(call, callable);
  if (name == "std::generate")
    return generate(call, callable);
  return std::nullopt;
}

} // namespace devicetidy
