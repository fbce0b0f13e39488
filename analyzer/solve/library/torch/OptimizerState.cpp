#include "analyzer/solve/library/torch/OptimizerState.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/torch/Modules.h"

#include <cstdlib>

namespace devicetidy {
namespace {

const Name stateField("@state"); // of an optimizer: parameter -> what is kept of it, as one tensor
const Name keepsField("@keeps"); // of an optimizer or its options: there when step() keeps something

std::string_view classNameOf(const Call &call, Name type) {
  const Type *record = call.machine.program.type(type);
  return record ? record->templateName.view() : type.view();
}

// Is `value` a number that is known and not zero?
bool isNonZero(const Call &call, const Value &value) {
  static const Name floatOp("float");
  if (!is(value, ValueKind::Scalar))
    return false;
  const Term term = call.row.resolve(value->term);
  if (const auto number = constantOf(term))
    return *number != 0;
  return term->kind == TermKind::Apply && term->name == floatOp &&
         std::strtod(term->args[0]->name.str().c_str(), nullptr) != 0;
}

// `optimizer` with something kept of each of its parameters, as they are now.
Value withState(Call &call, const Value &optimizer) {
  const auto before = optimizer->fields.find(stateField);
  Value state = before != optimizer->fields.end() ? before->second : recordValue({});
  for (const Value &parameter : optimizedBy(call, optimizer)) {
    const Placement placement = call.machine.memory.placementOf(call.row, parameter);
    const Name key = keyOfParameter(parameter->address);
    if (placement.isKnown() && !state->fields.count(key))
      state = withField(state, key,
                        tensorValue(placement, parameter->rank,
                                    call.machine.note(call.machine.memory.historyOf(call.row, parameter),
                                                      StepKind::Inherited, call.fact.where,
                                                      "the optimizer's state", placement.describe())));
  }
  return withField(optimizer, stateField, state);
}

} // namespace

Name keyOfParameter(const Address &cell) {
  return Name(std::to_string(cell.root) + ":" + std::to_string(cell.path ? cell.path->hash : 0));
}

std::vector<Value> optimizedBy(Call &call, const Value &optimizer) {
  std::vector<Value> all, parameters;
  const auto given = optimizer->fields.find(optimizedField);
  if (given != optimizer->fields.end())
    call.machine.collectTensors(call.row, given->second, all);
  for (Value &tensor : all)
    if (tensor->address.valid())
      parameters.push_back(std::move(tensor));
  return parameters;
}

Value constructOptimizer(Call &call, Name type, const std::vector<Value> &args) {
  const std::string_view name = classNameOf(call, type);
  Value made = recordValue(type, {{optimizedField, args.empty() ? unknownValue() : args[0]}});
  const bool areOptionsKeeping =
      args.size() > 1 && is(args[1], ValueKind::Record) && args[1]->fields.count(keepsField);
  if (areOptionsKeeping || isOneOf(name, {"torch::optim::Adam", "torch::optim::AdamW",
                                          "torch::optim::Adagrad", "torch::optim::RMSprop"}))
    made = withField(made, keepsField, scalarValue(intTerm(1)));
  return name == "torch::optim::Adagrad" ? withState(call, made) : made;
}

std::optional<Outcomes> modelOptimizerState(Call &call) {
  const std::string_view name = call.fact.name.view(), method = lastPart(name);
  const Address self = call.objectAddress();
  if (!startsWith(name, "torch::optim::") || !call.fact.hasObject || !self.valid())
    return std::nullopt;
  Value object = call.object();
  if (endsWith(name.substr(0, name.size() - method.size() - 2), "Options")) {
    if (method == "momentum" && call.argCount() == 1 && is(object, ValueKind::Record) &&
        isNonZero(call, call.arg(0)))
      call.machine.memory.write(call.row, self, withField(object, keepsField, scalarValue(intTerm(1))));
    return call.fact.resultIsAddress && call.argCount() == 1 ? std::optional(call.done(addressValue(self)))
                                                             : std::nullopt;
  }
  // Who asks for the state may move it, and a loaded one is where it was saved.
  const bool isTaken = method == "state" || models::api(name).role == "load_module";
  if (isTaken && is(object, ValueKind::Record) && object->fields.count(keepsField)) {
    ValueData data = *object;
    data.fields.erase(keepsField);
    call.machine.memory.write(call.row, self, makeValue(std::move(data)));
  }
  return std::nullopt;
}

bool isOptimizer(const Value &value) {
  return is(value, ValueKind::Record) && value->fields.count(optimizedField) != 0;
}

// Optimizer::load reads each tensor of the state as the archive hands it out (optim/serialize.h). What it
// replaces is gone. A step that follows puts what is unknown where the parameter is, or throws.
void loadState(Call &call, const Address &where, const Placement &placement, const History &history) {
  Value optimizer = call.machine.memory.read(call.row, where);
  if (!isOptimizer(optimizer))
    return;
  Value state = recordValue({});
  for (const Value &parameter : optimizedBy(call, optimizer))
    if (placement.isKnown() && optimizer->fields.count(keepsField))
      state = withField(state, keyOfParameter(parameter->address),
                        tensorValue(placement, parameter->rank, history));
  call.machine.memory.write(call.row, where, withField(optimizer, stateField, state));
}

Placement stateDevice(const Call &call, const Value &optimizer) {
  const auto state = optimizer->fields.find(stateField);
  std::vector<Value> tensors;
  if (state != optimizer->fields.end())
    for (const auto &[parameter, kept] : state->second->fields)
      tensors.push_back(kept);
  return tensors.empty() ? Placement::unknown() : commonPlacement(call.machine, call.row, tensors);
}

void stepState(Call &call, const Value &optimizer) {
  const Address self = call.objectAddress();
  if (!optimizer->fields.count(keepsField) || !self.valid())
    return;
  if (const auto state = optimizer->fields.find(stateField);
      state != optimizer->fields.end() && is(state->second, ValueKind::Record))
    for (const Value &parameter : optimizedBy(call, optimizer)) {
      const auto kept = state->second->fields.find(keyOfParameter(parameter->address));
      if (kept == state->second->fields.end() || !is(kept->second, ValueKind::Tensor))
        continue;
      Machine::Requirement requirement;
      requirement.operation = std::string(lastPart(call.fact.name.view()));
      call.machine.requireSame(
          call,
          {{parameter, nullptr, "a parameter"}, {kept->second, nullptr, "the optimizer's state for it"}},
          requirement);
      break;
    }
  call.machine.memory.write(call.row, self, withState(call, optimizer));
}

} // namespace devicetidy
