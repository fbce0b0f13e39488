#include "analyzer/solve/engine/Entries.h"
#include "analyzer/facts/Language.h"
#include "analyzer/solve/engine/Drivers.h"
#include "analyzer/solve/engine/EntryStates.h"
#include "analyzer/solve/engine/Lives.h"
#include "analyzer/solve/engine/UnitTests.h"

#include <algorithm>

namespace devicetidy {
namespace {

// What constructors put into their object.
std::set<Name> fieldsIn(const std::vector<Row> &rows, RootId object) {
  std::set<Name> fields;
  for (const Row &row : rows)
    if (const Value made = row.store.get(object))
      for (const auto &[name, value] : made->fields)
        fields.insert(name);
  return fields;
}

// The fields of `before` that are not the same in `after`.
void addChanged(const Value &before, const Value &after, std::set<Name> &changed) {
  if (before && after && is(before, ValueKind::Record))
    for (const auto &[name, value] : before->fields)
      if (const auto now = after->fields.find(name); now == after->fields.end() || !same(now->second, value))
        changed.insert(name);
}

// Is there a block that calls something, to which a way without an exception leads, not among `reached`?
bool hasOtherWay(const Function &function, const std::vector<bool> &reached) {
  std::vector<bool> seen(function.blocks.size());
  std::vector<BlockId> open{0};
  while (!open.empty()) {
    const BlockId id = open.back();
    open.pop_back();
    if (id < 0 || seen[static_cast<std::size_t>(id)])
      continue;
    seen[static_cast<std::size_t>(id)] = true;
    const Block &block = function.blocks[static_cast<std::size_t>(id)];
    const auto isCall = [](const Fact &fact) { return fact.kind == FactKind::Call; };
    if (!reached[static_cast<std::size_t>(id)] && block.terminator.kind != TerminatorKind::Unreachable &&
        std::any_of(block.facts.begin(), block.facts.end(), isCall))
      return true;
    open.insert(open.end(), block.terminator.successors.begin(), block.terminator.successors.end());
  }
  return false;
}

class Entries {
public:
  Entries(Machine &machine, const Usage &usage)
      : machine(machine), usage(usage), states(machine, usage), lives(machine, states, usage) {}

  void runAll() {
    std::vector<const Function *> mains, roots, lambdas, rest, tests, restOfTests;
    for (Name id : machine.program.order) {
      const Function *function = machine.program.function(id);
      if (!function->hasBody || !function->isEntry || function->isModel || isGlobalInit(id) ||
          isCompanion(id) || !usage.devicesMatter.count(id) || isComprehension(*function))
        continue; // a comprehension is run where it stands
      const bool isCalled = usage.called.count(id) != 0;
      (function->isMain          ? mains
       : isOfTestFile(*function) ? (isCalled || function->isLambda ? restOfTests : tests)
       : function->isLambda      ? lambdas
       : isCalled                ? rest
       : isUnitTest(*function)   ? tests
                                 : roots)
          .push_back(function);
    }
    for (const Function *function : mains)
      run(*function);
    const std::set<const Function *> ofMain = machine.entered;
    // Lambdas that nothing has run were handed to a library, which calls them.
    for (const bool ofImported : {false, true}) {
      const auto isDue = [&](const Function &function) {
        return isImported(function) == ofImported && !isOfTestFile(function) &&
               (!ofImported || isWithin(++imported, bounds::importedEntries, Bound::ImportedEntries));
      };
      const auto runDue = [&](bool areDriven) {
        for (const auto *group : {&roots, &lambdas, &rest})
          for (const Function *function : *group)
            if (!isDone(*function) && isDriven(machine, *function) == areDriven && isDue(*function)) {
              isLived = group == &roots;
              run(*function);
            }
      };
      runDue(false);
      if (!ofImported || machine.imported)
        lives.run(roots, ofMain, isDue);
      runDue(true); // those that no driver has come to
    }
    isLived = false;
    for (const Function *function : rest)
      if (!isImported(*function) && mayBeCalledOtherwise(*function)) {
        machine.otherwise = function;
        run(*function);
        machine.otherwise = nullptr;
      }
    // What a test calls is there for others, too: tests come last, and cost no more than all before them.
    const std::size_t ofOthers = machine.factsOfProgram();
    for (const auto *group : {&tests, &restOfTests})
      for (const Function *function : *group)
        if (!isDone(*function) && !isImported(*function) &&
            isWithin(machine.factsOfProgram() - ofOthers, std::max(ofOthers, bounds::factsOfEntries),
                     Bound::FactsOfTests))
          run(*function);
  }

private:
  bool isDone(const Function &function) const {
    return machine.entered.count(&function) != 0 && machine.enteredWhole.count(&function) != 0;
  }

  bool isImported(const Function &function) const {
    return machine.imported && machine.imported->count(function.where.file) != 0;
  }

  bool isGlobalInit(Name id) const {
    const auto &inits = machine.program.globalInits;
    return std::find(inits.begin(), inits.end(), id) != inits.end();
  }

  // As each constructor leaves an object, with what other functions change taken as unknown.
  const std::vector<Row> &objects(Name className) {
    auto [entry, isNew] = objectsOf.try_emplace(className);
    std::vector<Row> &rows = entry->second;
    if (!isNew)
      return rows;
    rows = states.construct(className);
    if (const Type *type = machine.program.type(className); !rows.empty()) {
      const bool isModule = machine.types.isModule(className);
      if (!isModule || isPython(type->where.file.view()))
        constructed[className] = isModule ? fieldsIn(rows, states.object(className).root) : std::set<Name>();
    }
    const RootId root = states.object(className).root;
    for (Row &row : rows) {
      const Value before = row.store.get(root);
      states.forgetWritten(row, root);
      addChanged(before, row.store.get(root), forgotten[className]);
    }
    if (rows.empty())
      rows.push_back(states.open());
    if (!isWithin(rows.size(), bounds::objectsOfClass, Bound::ObjectsOfClass))
      rows.resize(bounds::objectsOfClass);
    return rows;
  }

  void run(const Function &function) {
    const bool isMethod = !function.className.empty() && !function.isStatic && !function.isLambda;
    if (function.isLambda && states.callClosure(function))
      return;
    if (!isMethod)
      states.call(function, function.isMain ? states.ofMain(function) : states.open());
    else if (function.isConstructor)
      objects(function.className);
    else
      for (const Row &row : objects(function.className)) {
        const auto made = constructed.find(function.className);
        machine.isPartial = isLived && made != constructed.end();
        machine.forgottenFields = machine.isPartial ? forgotten[function.className] : std::set<Name>();
        machine.partialFields = machine.isPartial ? made->second : std::set<Name>();
        states.call(function, row, states.object(function.className));
        machine.isPartial = false;
        machine.forgottenFields.clear();
      }
  }

  // Is it for others, too, and does it go a way on which no caller in the program has sent it?
  bool mayBeCalledOtherwise(const Function &function) const {
    if (usage.hasMain || !isPython(function.where.file.view()) || function.isConstructor ||
        function.isLambda || machine.types.isHidden(function) || isOfTestFile(function) ||
        isDriven(machine, function))
      return false;
    const auto reached = machine.reached.find(&function);
    return reached != machine.reached.end() && hasOtherWay(function, reached->second);
  }

  Machine &machine;
  const Usage &usage;
  EntryStates states;
  Lives lives;
  std::unordered_map<Name, std::vector<Row>> objectsOf;
  std::map<Name, std::set<Name>> forgotten; ///< what methods change of what the constructors of a class leave
  std::map<Name, std::set<Name>> constructed; ///< classes whose constructors are known: partialFields of each
  std::size_t imported = 0;                   ///< entries of files that nobody has named
  bool isLived = false;                       ///< Lives runs the function at hand, too
};

} // namespace

void runEntries(Machine &machine, const Usage &usage) { Entries(machine, usage).runAll(); }

} // namespace devicetidy
