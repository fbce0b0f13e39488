//===- Modules.cpp - torch::nn modules: made, moved, run, held ---------===//
#include "analyzer/solve/library/torch/Modules.h"

#include "analyzer/solve/library/torch/Archives.h"
#include "analyzer/solve/library/torch/Gradients.h"
#include "analyzer/solve/library/torch/RankDevices.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/Tensors.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;
using models::Rule;

// Module::to: the first device or options among the arguments says where.
std::optional<Outcomes> moveCall(Call &call, const Effect &) {
  Address self = call.objectAddress();
  std::optional<Placement> target;
  for (std::size_t i = 0; i < call.argCount() && !target; ++i) {
    Value value = call.arg(i);
    if (is(value, ValueKind::Device) || is(value, ValueKind::Options))
      target = deviceOf(call.machine.memory, call.row, value);
    else if (is(value, ValueKind::Unknown) &&
             call.machine.types.classOf(call.fact.operands[call.first + i].type) == TypeClass::Device)
      target = Placement::unknown();
  }
  if (target && self.valid()) {
    Placement placement = call.machine.concrete(call.row, *target);
    if (isAbsent(call.row, placement))
      return Outcomes();
    meetPlacement(call, placement);
    moveModule(call.machine, call.row, self, placement,
               call.machine.note(nullptr, StepKind::ModuleMoved, call.fact.where,
                                 call.fact.operands[0].text.str(), placement.describe()));
  }
  return call.done(unknownValue());
}

// The parameters of the module at `module` as one tensor; unknown when it has none that are known.
Value parametersOf(const Call &call, const Address &module) {
  const Value cell = call.machine.memory.read(call.row, module.field(hidden::parameters));
  if (!is(cell, ValueKind::Tensor))
    return unknownValue();
  return cell->placement.kind == PlacementKind::Symbol ? cell
                                                       : parameterHandle(module.field(hidden::parameters));
}

// A Sequential from outside: which modules are in it is not known, but hardly one has no parameters.
Outcomes forwardUnseen(Call &call, const Address &module, const std::vector<Argument> &args,
                       const std::string &name, const History &owner) {
  TensorUse parameters{parametersOf(call, module), nullptr, "the parameters of " + name, owner, true};
  if (!is(parameters.tensor, ValueKind::Tensor) || args.empty() || !is(args[0].value, ValueKind::Tensor))
    return call.done(unknownValue());
  Machine::Requirement requirement;
  requirement.operation = "Sequential::forward";
  requirement.isSure = false;
  const TensorUse input{args[0].value, args[0].written, {}};
  const Placement placement = call.machine.requireSame(call, {parameters, input}, requirement);
  return call.done(
      tensorValue(placement, someRank, call.machine.memory.historyOf(call.row, parameters.tensor)));
}

Outcomes forwardBuiltin(Call &call, const Address &module, const Value &record, const models::Module &model,
                        const std::vector<Argument> &args, const std::string &name, const History &owner) {
  if (model.forward.rule == Rule::Sequential)
    return record->origin &&
                   !is(call.machine.memory.read(call.row, module.field(hidden::children)), ValueKind::List)
               ? forwardUnseen(call, module, args, name, owner)
               : forwardSequential(call, module, args);
  if (model.forward.rule == Rule::Functional)
    return forwardFunctional(call, record, args);
  if (model.forward.rule == Rule::Modules || model.forward.rule == Rule::Parameters)
    return call.done(unknownValue());
  std::vector<TensorUse> uses;
  const std::size_t offset = call.fact.operands.size() - std::min(call.fact.operands.size(), args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::vector<Value> tensors;
    call.machine.collectTensors(call.row, args[i].value, tensors);
    const Operand *operand =
        offset + i < call.fact.operands.size() ? &call.fact.operands[offset + i] : nullptr;
    for (Value &tensor : tensors)
      uses.push_back({std::move(tensor), operand, {}});
  }
  bool isAssigned = false; // `linear->weight = x`: what forward uses then is not what is registered
  for (const auto &[field, value] : record->fields)
    if (is(value, ValueKind::Tensor) && !hidden::isHidden(field)) {
      isAssigned = true;
      uses.push_back({value, nullptr, "the " + field.str() + " of " + name});
    }
  const bool owns = record->fields.count(hidden::parameters) || (record->origin && model.hasParameters);
  if (owns && !isAssigned) {
    const Value handle = parametersOf(call, module);
    const std::string what = model.hasOptionalWeight ? "the weight of " : "the parameters of ";
    const TensorUse parameters{handle, nullptr, what + name, owner, true};
    if (is(handle, ValueKind::Tensor))
      uses.insert(model.forward.isLoss ? uses.end() : uses.begin(), parameters);
    else
      return call.done(unknownValue());
  }
  return applyOp(call, model.forward, std::move(uses), std::string(model.forward.name) + "::forward");
}

/// What a class moves that has a method _apply() of its own.
struct OwnMoves {
  std::set<Name> named; ///< fields, as it likes
  bool byName = false;  ///< tensors under names that it keeps, as one moves what is registered
};

OwnMoves ownMoves(const Machine &machine, Name className) {
  OwnMoves moves;
  if (const Function *apply = findMethod(machine, className, "_apply"))
    for (const Block &block : apply->blocks)
      for (const Fact &fact : block.facts) {
        const std::string_view scope = scopeOf(fact.name.view()), name = lastPart(fact.name.view());
        if (isLateBound(fact) && isOneOf(scope, {"python::attribute", "python::set"}))
          moves.named.insert(Name(name));
        moves.byName |= isLateBound(fact) && name == "builtins.setattr";
      }
  return moves;
}

} // namespace

void moveModule(Machine &machine, Row &row, const Address &where, const Placement &placement,
                const History &history) {
  std::set<Address> seen;
  std::vector<Address> work{where};
  while (!work.empty()) {
    Address module = work.back();
    work.pop_back();
    if (!module.valid() || !seen.insert(module).second)
      continue;
    Value record = machine.memory.read(row, module);
    if (!is(record, ValueKind::Record))
      continue;
    if (machine.types.isProject(record->type) && history && placement.isKnown())
      machine.movedClasses.emplace(record->type, history->step);
    if (record->origin)
      row.moves.push_back({record->origin, placement, history});
    noteMoved(machine, row, module, record, placement);
    Value moved = record;
    const OwnMoves own = ownMoves(machine, record->type);
    for (const auto &[name, field] : record->fields) {
      if (own.byName && is(field, ValueKind::Tensor))
        moved = withField(moved, name, tensorValue(placement, field->rank, history));
      else if (own.named.count(name))
        moved = withField(moved, name, unknownValue());
      if (hidden::isParameter(name) && is(field, ValueKind::Tensor))
        moved = withField(moved, name, tensorValue(placement, field->rank, history));
      else if (hidden::isSubmodule(name) && is(field, ValueKind::Address))
        work.push_back(field->address);
      else if (name == hidden::children) // a join may have lost the names under which they are registered
        forEachAddress(field, [&](const Address &child) { work.push_back(child); });
    }
    machine.memory.write(row, module, withField(moved, hidden::moved, deviceValue(placement, history)));
  }
}

std::string quotedObject(const Call &call) { return "'" + call.fact.operands[0].text.str() + "'"; }

Outcomes forwardModule(Call &call, const Address &module, std::vector<Argument> args, const std::string &name,
                       const History &owner) {
  Value record = call.machine.memory.read(call.row, module);
  if (!is(record, ValueKind::Record))
    return call.done(unknownValue());
  if (const models::Module *own = call.machine.types.builtinModule(record->type))
    return forwardBuiltin(call, module, record, *own, args, name, owner);
  if (const Function *forward = findMethod(call.machine, record->type, "forward"))
    return invokeForwarded(call, call.row, *forward, module, args);
  if (const models::Module *base = call.machine.types.builtinModuleBase(record->type))
    return forwardBuiltin(call, module, record, *base, args, name, owner);
  return call.done(unknownValue());
}

namespace {

// forward() of the module itself; of a project's class only where it is another's.
std::optional<Outcomes> forwardSelf(Call &call, const Effect &) {
  const Address self = call.objectAddress();
  if (call.machine.program.function(call.fact.target))
    return std::nullopt;
  if (!self.valid())
    return call.done(unknownValue());
  const History owner = registerOf(call.row, call.fact.operands[0].reg)->history;
  const Value record = call.machine.memory.read(call.row, self);
  // A method of the module asks for that of the class behind its own.
  if (const models::Module *base =
          call.machine.types.builtinModule(Name(std::string(scopeOf(call.fact.name.view()))));
      base && self == call.frame.self && is(record, ValueKind::Record))
    return forwardBuiltin(call, self, record, *base, call.forwardedFrom(0), quotedObject(call), owner);
  return forwardModule(call, self, call.forwardedFrom(0), quotedObject(call), owner);
}

// forward() of what a module holder or AnyModule holds.
std::optional<Outcomes> forwardHeld(Call &call, const Effect &) {
  const Value held = call.object();
  if (!is(held, ValueKind::Address))
    return call.done(unknownValue());
  return forwardModule(call, held->address, call.forwardedFrom(0), quotedObject(call), held->history);
}

// The object as another class: Module::as.
std::optional<Outcomes> sameObject(Call &call, const Effect &) {
  return call.done(registerOf(call.row, call.fact.operands[0].reg));
}

// Builder methods of option structs: tensors given to them stay in them.
std::optional<Outcomes> setOption(Call &call, const Effect &) {
  const Address self = call.objectAddress();
  Value object = call.object();
  if (call.argCount() == 1 && is(call.arg(0), ValueKind::Tensor) && self.valid()) {
    if (!is(object, ValueKind::Record))
      call.machine.memory.write(call.row, self, recordValue(call.fact.operands[0].type));
    call.machine.memory.write(call.row, self.field(Name(lastPart(call.fact.name.view()))), call.arg(0));
  }
  if (call.fact.resultIsAddress && self.valid())
    return call.done(addressValue(self));
  return call.done(call.machine.unknownResult(call));
}

// torch::jit::load(path[, device]): without a device the parameters are where they were saved.
std::optional<Outcomes> loadScript(Call &call, const Effect &) {
  Placement placement = placementOfSaved(call);
  for (std::size_t i = 1; i < call.fact.operands.size(); ++i)
    if (Value value = call.operand(i); is(value, ValueKind::Device))
      placement = call.machine.concrete(call.row, value->placement);
    else if (!is(value, ValueKind::Null) &&
             call.machine.types.classOf(call.fact.operands[i].type) == TypeClass::Optional)
      placement = Placement::unknown(); // it may hold one
  if (isAbsent(call.row, placement))
    return Outcomes();
  const History history = historyOfLoad(call, "the script", placement);
  return call.done(
      recordValue("torch::jit::Module", {{hidden::parameters, tensorValue(placement, someRank, history)}}));
}

// A tensor of one element may be a flag that the script reads on the host.
bool mayBeFlag(const Value &tensor) { return tensor->rank == 0 || tensor->count == 1; }

// forward() of a scripted module: what goes in must be where its parameters are, and what comes out is there
// too. Where those are not known, what goes in must be in one place.
std::optional<Outcomes> runScript(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Address self = call.objectAddress();
  const Value parameters = self.valid() ? parametersOf(call, self) : unknownValue();
  const bool isPlaced = is(parameters, ValueKind::Tensor);
  const Placement where = isPlaced ? machine.memory.placementOf(call.row, parameters) : Placement::unknown();
  const bool isFromOutside = where.role == SymbolRole::Module;
  const bool isKept = isFromOutside && callThatWasGiven(where) != machine.entryCall; // by an object
  std::vector<TensorUse> uses;
  if (isPlaced && !isKept)
    uses.push_back({parameters, nullptr, "the parameters of " + quotedObject(call), nullptr, true});
  const bool hasParameters = !uses.empty();
  for (TensorUse &use : tensorUses(call, 1))
    if (!mayBeFlag(use.tensor))
      uses.push_back(std::move(use));
  Machine::Requirement requirement;
  requirement.operation = "forward of a scripted module";
  // One from outside may have no parameters, and may bring what it gets to where it is.
  requirement.isSure = hasParameters && parameters->address.valid();
  requirement.isOpen = hasParameters && isFromOutside;
  const Placement placement = machine.requireSame(call, uses, requirement);
  if (!hasParameters)
    return call.done(unknownValue());
  return call.done(tensorValue(placement, someRank, machine.memory.historyOf(call.row, uses[0].tensor)));
}

// A deep copy: the modules below are copied too, the tensors stay where they are.
Address copyModule(Call &call, const Address &module, std::map<RootId, Address> &copies) {
  auto known = copies.find(module.root);
  if (known != copies.end())
    return {known->second.root, module.path};
  const Value whole = call.machine.memory.read(call.row, {module.root, nullptr});
  const bool isElement = module.path && is(whole, ValueKind::List); // of those that a loop has made
  if (!isElement && (module.path || !is(whole, ValueKind::Record)))
    return module;
  const Address copy = call.machine.allocate(call.row, call.frame, call.fact, whole->type);
  copies[module.root] = copy;
  const Value copied = rewriteAddresses(whole, [&](const Address &inner) {
    return inner.root == module.root ? Address{copy.root, inner.path} : copyModule(call, inner, copies);
  });
  call.machine.memory.write(call.row, copy, copied);
  return {copy.root, module.path};
}

std::optional<Outcomes> registerInScript(Call &call, const Effect &) {
  if (is(call.arg(1), ValueKind::Tensor))
    call.machine.memory.write(call.row, call.objectAddress().field(hidden::parameters), call.arg(1));
  return call.done(unknownValue());
}

std::optional<Outcomes> cloneModule(Call &call, const Effect &) {
  if (!call.objectAddress().valid())
    return std::nullopt;
  std::map<RootId, Address> copies;
  const Address copy = copyModule(call, call.objectAddress(), copies);
  if (call.argCount() && is(call.arg(0), ValueKind::Device))
    moveModule(call.machine, call.row, copy, call.machine.concrete(call.row, call.arg(0)->placement),
               call.machine.note(nullptr, StepKind::ModuleMoved, call.fact.where, "the clone",
                                 call.arg(0)->placement.describe()));
  return call.done(addressValue(copy));
}

// Does a holder of `impl` made of `value` hold what it holds? A module of another class is an argument of the
// constructor.
bool isHeldAlready(const Call &call, Name impl, const Value &value) {
  if (is(value, ValueKind::Null))
    return true;
  if (!is(value, ValueKind::Address))
    return false;
  const Value held = call.machine.memory.read(call.row, value->address);
  return !is(held, ValueKind::Record) || !call.machine.types.isModule(held->type) ||
         call.machine.types.derivesFrom(held->type, impl.view());
}

// A holder makes its module as that module's constructor does, on each way through it.
std::optional<Outcomes> makeHolder(const Making &making, const Effect &) {
  Call &call = making.call;
  Machine &machine = call.machine;
  const Name impl = machine.types.inner(making.type);
  if (impl.empty())
    return std::nullopt;
  if (making.args.size() == 1 && isHeldAlready(call, impl, making.arg(0)))
    return making.done(making.arg(0));
  const Address where = machine.allocate(call.row, call.frame, call.fact, impl);
  Outcomes outcomes;
  for (Row &row : machine.construct(call.frame, call.fact, call.row, impl, where, making.args))
    outcomes.push_back({std::move(row), addressValue(where)});
  return outcomes;
}

// AnyModule holds the module among its arguments.
std::optional<Outcomes> makeAnyModule(const Making &making, const Effect &) {
  for (const Argument &arg : making.args)
    if (const Address child = childModule(making.call, {arg.value, {}}); child.valid())
      return making.done(addressValue(child));
  return making.done(unknownValue());
}

// The tensors that a loss gets in its options are its parameters.
void keepWeight(const Making &making, std::map<Name, Value> &fields) {
  Machine &machine = making.call.machine;
  const Row &row = making.call.row;
  std::vector<Value> tensors;
  for (const Argument &arg : making.args)
    machine.collectTensors(row, arg.value, tensors);
  if (!tensors.empty())
    fields[hidden::parameters] = tensorValue(machine.memory.placementOf(row, tensors[0]), tensors[0]->rank,
                                             machine.memory.historyOf(row, tensors[0]));
}

// A module of torch::nn itself.
std::optional<Outcomes> makeModule(const Making &making, const Effect &) {
  Machine &machine = making.call.machine;
  const models::Module *model = machine.types.builtinModule(making.type);
  if (!model)
    return std::nullopt;
  std::map<Name, Value> fields;
  if (model->hasParameters)
    fields[hidden::parameters] =
        tensorValue(Placement::cpu(), someRank,
                    machine.note(nullptr, StepKind::ModuleMade, making.call.fact.where,
                                 std::string(model->forward.name), "cpu"));
  else if (model->hasOptionalWeight)
    keepWeight(making, fields);
  if (model->forward.rule == Rule::Functional)
    keepFunctional(fields, making.args);
  const Value made = recordValue(making.type, std::move(fields));
  const bool holdsModules = model->forward.rule == Rule::Sequential || model->forward.rule == Rule::Modules;
  return making.done(holdsModules ? withModules(making, made) : made);
}

// torch::nn option structs keep the tensors they get.
std::optional<Outcomes> makeNnOptions(const Making &making, const Effect &) {
  std::map<Name, Value> fields;
  for (std::size_t i = 0; i < making.args.size(); ++i)
    if (is(making.arg(i), ValueKind::Tensor))
      fields[Name("argument" + std::to_string(i))] = making.arg(i);
  return making.done(recordValue(making.type, std::move(fields)));
}

} // namespace

Words moduleWords() {
  return {{{"module_to", moveCall},
           {"module_clone", cloneModule},
           {"module_forward", forwardSelf},
           {"same_object", sameObject},
           {"forward_held", forwardHeld},
           {"set_option", setOption},
           {"jit_load", loadScript},
           {"jit_module", runScript},
           {"jit_register", registerInScript}},
          {},
          {{"make_module", makeModule},
           {"make_holder", makeHolder},
           {"make_any_module", makeAnyModule},
           {"make_nn_options", makeNnOptions}}};
}

} // namespace devicetidy
