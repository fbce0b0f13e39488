//===- Environment.cpp - environment variables, and who is started several times ---===//
//
// A launcher (torchrun, accelerate launch) starts a program once for each GPU and tells each rank in its
// environment which it is. Frameworks join the ranks when they are told so.
//
//===----------------------------------------------------------------------===//
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/python/Python.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

bool counts(std::string_view variable) {
  return variable.size() > 4 && variable.substr(variable.size() - 4) == "SIZE";
}

Term rankTerm(std::string_view variable) { return applyTerm(op::rank, {textTerm(Name(variable))}); }

Value comparison(const Row &row, Name sign, Term term, std::int64_t number) {
  return operatorValue(row, sign, {scalarValue(term), scalarValue(intTerm(number))}, /*areIntegers=*/true);
}

// Does the condition say that there are several ranks, or that there is one? Nothing where it says neither.
// Who asks whether the rank is -1, or how many there are, wants to know that.
std::optional<bool> saysSeveral(const Condition &condition) {
  const auto &[term, outcome] = condition;
  if (term->kind != TermKind::Apply || term->args.size() != 2)
    return std::nullopt;
  const bool isFirst = constantOf(term->args[0]).has_value();
  const std::optional<std::int64_t> number = constantOf(term->args[isFirst ? 0 : 1]);
  const Term asked = term->args[isFirst ? 1 : 0];
  if (!number || asked->kind != TermKind::Apply || asked->name != op::rank)
    return std::nullopt;
  const bool isCount = counts(textOf(asked->args[0]).value_or(Name()).view());
  const std::int64_t alone = isCount ? 1 : -1;
  if (term->name == op::equal && *number == alone)
    return outcome == 0;
  if (term->name == op::equal && *number == 0 && !isCount && outcome == 0) // another rank than the first
    return true;
  if (term->name == op::less && *number == (isFirst ? alone : alone + 1)) // alone < asked, asked < alone + 1
    return (outcome == 1) == isFirst;
  return std::nullopt;
}

// What the program has put into the environment itself.
Address writtenVariables(const Call &call) {
  return {call.machine.memory.global("python::environment", {}, "the environment")};
}

Value writtenVariable(const Call &call, const Row &row, const std::string &name) {
  const Value written = row.store.get(writtenVariables(call).root);
  return written && is(written, ValueKind::Record) && written->fields.count(Name(name))
             ? written->fields.at(Name(name))
             : nullptr;
}

} // namespace

Outcomes readVariable(Call &call, Row &row, const Argument &name, const Argument *otherwise) {
  const auto text = textOf(call, name.value);
  if (const Value written = text ? writtenVariable(call, row, *text) : nullptr)
    return done(row, written);
  if (text && models::hasRole(*text, "rank"))
    return callTorch(call, row, "getenv", {name}, false, "long");
  const bool isDevice =
      otherwise && is(asDevice(call, otherwise->value), ValueKind::Device) && textOf(call, otherwise->value);
  if (!text)
    return done(row, unknownValue());
  const Term variable = symbolTerm(Name("variable " + *text));
  return done(row, isDevice ? deviceValue(Placement::symbol(SymbolRole::DeviceChoice, variable, Name(*text)))
                            : withIdentity(variable));
}

Value hasVariable(const Call &call, const Value &name) {
  const auto text = textOf(call, name);
  if (text && writtenVariable(call, call.row, *text))
    return scalarValue(intTerm(1));
  if (!text)
    return unknownValue();
  if (!models::hasRole(*text, "rank"))
    return scalarValue(call.row.resolve(applyTerm("has", {symbolTerm(Name("variable " + *text))})));
  return scalarValue(notTerm(comparison(call.row, op::less, rankTerm(*text), 0)->term));
}

void writeVariable(Call &call, const Value &name, const Value &value) {
  const Address where = writtenVariables(call);
  const auto text = textOf(call, name);
  const Value before = call.row.store.get(where.root);
  const Value now = text && before ? before : recordValue("python::environment", {});
  call.machine.memory.write(call.row, where, text ? withField(now, Name(*text), value) : now);
}

void launch(Row &row) {
  for (const char *variable : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"})
    for (const auto &[sign, number] :
         {std::pair(op::equal, 1), std::pair(op::equal, 0), std::pair(op::less, 2)})
      row.assume(comparison(row, sign, rankTerm(variable), number)->term, 0);
  for (const char *variable : {"RANK", "LOCAL_RANK"})
    for (const auto &[sign, number] : {std::pair(op::equal, -1), std::pair(op::less, 0)})
      row.assume(comparison(row, sign, rankTerm(variable), number)->term, 0);
}

bool hasRanks(const Row &row) {
  bool hasSeveral = false;
  for (const Condition &condition : row.known)
    if (const std::optional<bool> several = saysSeveral(condition)) {
      if (!*several)
        return false;
      hasSeveral = true;
    }
  return hasSeveral;
}

} // namespace devicetidy::python
