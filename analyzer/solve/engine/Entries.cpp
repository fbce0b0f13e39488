#include "analyzer/solve/engine/Entries.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Library.h"

#include <algorithm>

namespace devicetidy {
namespace {

class Entries {
public:
  Entries(Machine &machine, const Usage &usage) : machine(machine), usage(usage) {}

  void runAll() {
    runGlobals();
    open = base;
    forgetChanged(open);
    std::vector<const Function *> mains, roots, rest;
    for (Name id : machine.program.order) {
      const Function *function = machine.program.function(id);
      if (!function->hasBody || isGlobalInit(id) || isCompanion(id) || !usage.devicesMatter.count(id))
        continue;
      (function->isMain                               ? mains
       : usage.called.count(id) || function->isLambda ? rest
                                                      : roots)
          .push_back(function);
    }
    for (const auto *group : {&mains, &roots, &rest})
      for (const Function *function : *group)
        if (group == &mains || !machine.entered.count(function))
          run(*function);
  }

private:
  bool isGlobalInit(Name id) const {
    const auto &inits = machine.program.globalInits;
    return std::find(inits.begin(), inits.end(), id) != inits.end();
  }

  void runGlobals() {
    for (Name id : machine.program.globalInits)
      if (const Function *function = machine.program.function(id)) {
        machine.factsRun = 0;
        Frame frame{*function};
        Outcomes outcomes = machine.run(frame, base);
        if (outcomes.empty())
          continue;
        base = std::move(outcomes.front().row);
        machine.memory.dropLocals(base, 0);
        base.registers.clear();
        base.expressionEnded = false;
      }
  }

  // A function that no main leads to is called in a program that has run: what is changed somewhere may have
  // been. Of an object whose fields are changed one by one, the others are as its initialiser left them.
  void forgetChanged(Row &row) {
    std::vector<Name> ids; // in order of text: roots are numbered as they are met
    for (const auto &[id, global] : machine.program.globals)
      ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (Name id : ids) {
      const Global &global = machine.program.globals.at(id);
      const bool isFixed = global.isConst && machine.types.classOf(global.type) == TypeClass::Device;
      const bool isReplaced = !isFixed && usage.writtenGlobals.count(id) != 0;
      if (!isReplaced && !changesInside(global.type))
        continue;
      const RootId root = machine.memory.global(id, global.type, global.name);
      const Name flag(id.str() + std::string(initialisedSuffix));
      const bool isStaticLocal = usage.staticFlags.count(flag) != 0;
      const Value held = row.store.get(root);
      if (isReplaced || (!isStaticLocal && !(held && is(held, ValueKind::Record))))
        row.store.erase(root);
      else if (!isStaticLocal)
        forgetWritten(row, root, machine.memory.info(root).origin);
      if (isStaticLocal)
        row.store.set(machine.memory.global(flag, "bool", flag), scalarValue(intTerm(isReplaced)));
    }
    // A static local is initialised when an entry comes to it; it may have been used since.
    machine.initialisedStatic = [this](Row &initialised, Name id) {
      const auto global = machine.program.globals.find(id);
      if (global == machine.program.globals.end())
        return;
      const RootId root = machine.memory.global(id, global->second.type, global->second.name);
      forgetWritten(initialised, root, machine.memory.info(root).origin);
    };
  }

  bool changesInside(Name type) const {
    const Type *record = machine.program.type(type);
    return record && record->isProject &&
           std::any_of(record->fields.begin(), record->fields.end(),
                       [&](const Field &field) { return usage.writtenFields.count(field.name) != 0; });
  }

  Row bindParameters(const Function &function, Row row) {
    for (std::uint32_t i = 0; i < function.paramCount; ++i) {
      const Variable &parameter = function.locals[i];
      const Term origin = applyTerm(op::parameter, {textTerm(function.id), intTerm(i)});
      const RootId root = machine.memory.local(0, i, parameter);
      Value value =
          parameter.isReference
              ? addressValue({machine.memory.outside(origin, parameter.type, parameter.name), nullptr})
              : machine.memory.symbolic(parameter.type, origin, parameter.name);
      row.store.set(root, located(value, parameter.where));
    }
    return row;
  }

  // The first step of a parameter's history is its declaration.
  static Value located(const Value &value, Location where) {
    if (!value->history)
      return value;
    Step step = value->history->step;
    step.where = where;
    return withHistory(value, extend(nullptr, step));
  }

  // Objects a method may be called on: what each constructor leaves, with what other methods change taken as
  // unknown.
  std::vector<std::pair<Row, Address>> objects(Name className) {
    const Term origin = applyTerm(op::self, {textTerm(className)});
    const RootId root = machine.memory.outside(origin, className, "this");
    std::vector<std::pair<Row, Address>> result;
    const Type *type = machine.program.type(className);
    if (type)
      for (Name id : type->constructors) {
        const Function *constructor = machine.program.function(id);
        if (!constructor || !constructor->hasBody || isCompanion(id))
          continue;
        Row row = bindParameters(*constructor, open);
        row.store.set(root, recordValue(className));
        Frame frame{*constructor};
        frame.self = {root, nullptr};
        machine.memory.choices.constructing = className;
        Outcomes outcomes = machine.run(frame, std::move(row));
        machine.memory.choices.constructing = {};
        for (Outcome &outcome : outcomes) {
          machine.memory.dropLocals(outcome.row, 0);
          outcome.row.registers.clear();
          forgetWritten(outcome.row, root, origin);
          result.emplace_back(std::move(outcome.row), Address{root, nullptr});
        }
      }
    if (result.empty())
      result.emplace_back(open, Address{root, nullptr});
    if (!isWithin(result.size(), bounds::objectsOfClass, Bound::ObjectsOfClass))
      result.resize(bounds::objectsOfClass);
    return result;
  }

  void release(Row &row, RootId heap, Term origin) {
    Value module = row.store.get(heap);
    for (const auto &[name, field] : module->fields)
      if (hidden::isParameter(name) && is(field, ValueKind::Tensor) &&
          field->placement.kind == PlacementKind::Cpu && !module->fields.count(hidden::moved))
        module =
            withField(module, name,
                      tensorValue(Placement::symbol(SymbolRole::Module,
                                                    applyTerm(op::deviceOfParameter, {origin, intTerm(heap)}),
                                                    "the module's device"),
                                  field->rank, field->history));
    row.store.set(heap, module);
  }

  void forgetWritten(Row &row, RootId root, Term origin) {
    std::vector<RootId> untouched;
    Value object = row.store.get(root);
    if (!object || !is(object, ValueKind::Record))
      return;
    if (machine.types.isModule(object->type)) {
      // Where the user's module lives is up to whoever holds it.
      Placement placement = Placement::symbol(SymbolRole::Module, applyTerm(op::deviceOfParameter, {origin}),
                                              "the module's device");
      machine.library.hooks.moveModule(machine, row, {root, nullptr}, placement, nullptr);
      object = row.store.get(root);
    }
    // Modules its constructor made and did not move may be moved by whoever the object hands them to.
    row.store.forEach(RootKind::Heap, [&](RootId heap, const Value &held) {
      if (is(held, ValueKind::Record))
        untouched.push_back(heap);
    });
    for (RootId heap : untouched)
      release(row, heap, origin);
    ValueData data = *object;
    data.origin = origin;
    data.function = "this";
    for (auto field = data.fields.begin(); field != data.fields.end();)
      field = usage.writtenFields.count(field->first) ? data.fields.erase(field) : std::next(field);
    row.store.set(root, makeValue(std::move(data)));
  }

  void run(const Function &function) {
    machine.factsRun = 0;
    // Guards and set_device calls on the way are followed; what a caller outside has made current is not
    // known.
    machine.currentDeviceIsOpen =
        !function.isMain && (usage.setsDevice || (usage.hasGuards && function.paramCount > 0));
    machine.entryIsCalled = usage.called.count(function.id) != 0;
    const bool isMethod = !function.className.empty() && !function.isStatic && !function.isLambda;
    if (function.isConstructor) {
      objects(function.className);
      return;
    }
    if (!isMethod) {
      Frame frame{function};
      machine.run(frame, bindParameters(function, function.isMain ? base : open));
      return;
    }
    for (auto &[row, self] : objects(function.className)) {
      Frame frame{function};
      frame.self = self;
      machine.run(frame, bindParameters(function, row));
    }
  }

  Machine &machine;
  const Usage &usage;
  Row base; ///< where main starts: every global as it was initialised
  Row open; ///< where other entries start
};

} // namespace

void runEntries(Machine &machine, const Usage &usage) { Entries(machine, usage).runAll(); }

} // namespace devicetidy
