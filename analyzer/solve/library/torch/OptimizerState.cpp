#include "analyzer/solve/library/torch/OptimizerState.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

// Is `value` a number that is known and not zero?
bool isNonZero(const Call &call, const Value &value) {
  if (!is(value, ValueKind::Scalar))
    return false;
  return numberOf(call.row.resolve(value->term)).value_or(0) != 0;
}

// What is kept of a parameter goes by its place among the others: modules have other names where they are
// returned.
Name placeAmong(std::size_t i) { return Name(std::to_string(i)); }

// `optimizer` with something kept of each of its parameters, as they are now.
Value withState(Call &call, const Value &optimizer) {
  const auto before = optimizer->fields.find(hidden::state);
  Value state = before != optimizer->fields.end() ? before->second : recordValue({});
  const std::vector<Value> parameters = optimizedBy(call, optimizer);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Value &parameter = parameters[i];
    const Placement placement = call.machine.memory.placementOf(call.row, parameter);
    const Name key = placeAmong(i);
    if (placement.isKnown() && !state->fields.count(key))
      state = withField(state, key,
                        tensorValue(placement, parameter->rank,
                                    call.machine.note(call.machine.memory.historyOf(call.row, parameter),
                                                      StepKind::Inherited, call.fact.where,
                                                      "the optimizer's state", placement.describe())));
  }
  return withField(optimizer, hidden::state, state);
}

} // namespace

Name keyOfParameter(const Address &cell) {
  return Name(std::to_string(cell.root) + ":" + std::to_string(cell.path ? cell.path->hash : 0));
}

std::vector<Value> optimizedBy(Call &call, const Value &optimizer) {
  std::vector<Value> all, parameters;
  const auto given = optimizer->fields.find(hidden::optimized);
  if (given != optimizer->fields.end())
    call.machine.collectTensors(call.row, given->second, all);
  for (Value &tensor : all)
    if (tensor->address.valid())
      parameters.push_back(std::move(tensor));
  return parameters;
}

bool isOptimizer(const Value &value) {
  return is(value, ValueKind::Record) && value->fields.count(hidden::optimized) != 0;
}

// Optimizer::load reads each tensor of the state as the archive hands it out (optim/serialize.h). What it
// replaces is gone. A step that follows puts what is unknown where the parameter is, or throws.
void loadState(Call &call, const Address &where, const Placement &placement, const History &history) {
  Value optimizer = call.machine.memory.read(call.row, where);
  if (!isOptimizer(optimizer))
    return;
  Value state = recordValue({});
  const std::vector<Value> parameters = optimizedBy(call, optimizer);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (placement.isKnown() && optimizer->fields.count(hidden::keeps))
      state = withField(state, placeAmong(i), tensorValue(placement, parameters[i]->rank, history));
  call.machine.memory.write(call.row, where, withField(optimizer, hidden::state, state));
}

Placement stateDevice(const Call &call, const Value &optimizer) {
  const auto state = optimizer->fields.find(hidden::state);
  std::vector<Value> tensors;
  if (state != optimizer->fields.end())
    for (const auto &[parameter, kept] : state->second->fields)
      tensors.push_back(kept);
  return tensors.empty() ? Placement::unknown() : commonPlacement(call.machine, call.row, tensors);
}

void stepState(Call &call, const Address &self, const Value &optimizer) {
  if (!optimizer->fields.count(hidden::keeps) || !self.valid())
    return;
  if (const auto state = optimizer->fields.find(hidden::state);
      state != optimizer->fields.end() && is(state->second, ValueKind::Record)) {
    const std::vector<Value> parameters = optimizedBy(call, optimizer);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto kept = state->second->fields.find(placeAmong(i));
      if (kept == state->second->fields.end() || !is(kept->second, ValueKind::Tensor))
        continue;
      Machine::Requirement requirement;
      requirement.operation = "step";
      call.machine.requireSame(
          call,
          {{parameters[i], nullptr, "a parameter"}, {kept->second, nullptr, "the optimizer's state for it"}},
          requirement);
      break;
    }
  }
  call.machine.memory.write(call.row, self, withState(call, optimizer));
}

namespace {

// An optimizer of what it is given first, or a group of its parameters. It keeps something when its options
// say so.
Value optimizerOf(const Making &making) {
  const Value made = recordValue(making.type, {{hidden::optimized, making.arg(0)}}), options = making.arg(1);
  const bool isKeeping = is(options, ValueKind::Record) && options->fields.count(hidden::keeps);
  return isKeeping ? withField(made, hidden::keeps, scalarValue(intTerm(1))) : made;
}

std::optional<Outcomes> makeOptimizer(const Making &making, const Effect &) {
  return making.done(optimizerOf(making));
}

std::optional<Outcomes> makeKeepingOptimizer(const Making &making, const Effect &) {
  return making.done(withField(optimizerOf(making), hidden::keeps, scalarValue(intTerm(1))));
}

std::optional<Outcomes> makeOptimizerWithState(const Making &making, const Effect &) {
  return making.done(
      withState(making.call, withField(optimizerOf(making), hidden::keeps, scalarValue(intTerm(1)))));
}

// A setter of the options with a number that is not zero has the optimizer keep something.
std::optional<Outcomes> keepUnlessZero(Call &call, const Effect &) {
  const Value options = call.object();
  if (call.objectAddress().valid() && is(options, ValueKind::Record) && isNonZero(call, call.arg(0)))
    call.machine.memory.write(call.row, call.objectAddress(),
                              withField(options, hidden::keeps, scalarValue(intTerm(1))));
  return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress())
                                             : call.machine.unknownResult(call));
}

// Who asks for the state may move it.
std::optional<Outcomes> lendState(Call &call, const Effect &) {
  const Value optimizer = call.object();
  if (call.objectAddress().valid() && is(optimizer, ValueKind::Record)) {
    ValueData data = *optimizer;
    data.fields.erase(hidden::keeps);
    data.fields.erase(hidden::state);
    call.machine.memory.write(call.row, call.objectAddress(), makeValue(std::move(data)));
  }
  return call.done(call.machine.unknownResult(call));
}

} // namespace

Words optimizerWords() {
  return {{{"keep_unless_zero", keepUnlessZero}, {"lend_state", lendState}},
          {},
          {{"optimizer", makeOptimizer},
           {"keeping_optimizer", makeKeepingOptimizer},
           {"optimizer_with_state", makeOptimizerWithState}}};
}

} // namespace devicetidy
