#include "analyzer/solve/engine/Usage.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Distributed.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/engine/ClassBodies.h"
#include "analyzer/solve/engine/ExpressionWrites.h"
#include "analyzer/solve/engine/GpuChoices.h"
#include "analyzer/solve/engine/LateCalls.h"
#include "analyzer/solve/engine/Movers.h"
#include "analyzer/solve/engine/UnitTests.h"

#include <algorithm>
#include <map>

namespace devicetidy {
namespace {

bool isGuard(const Types &types, Name type) {
  static constexpr std::string_view guard = "guard";
  return types.kindOf(type) == guard;
}

// Is a function of Python given a device?
bool takesDevice(const Types &types, const Function &function) {
  const auto parameters = function.locals.begin() + function.paramCount;
  return isPython(function.where.file.view()) && !function.isModel &&
         std::any_of(function.locals.begin(), parameters, [&](const Variable &parameter) {
           return types.classOf(parameter.type) == TypeClass::Device;
         });
}

// Does the program ask a tensor where it is, or work with a device?
bool asksForDevice(const Types &types, const Fact &fact) {
  const bool isAsked = fact.kind == FactKind::Call && fact.hasObject && !fact.operands.empty() &&
                       types.classOf(fact.operands[0].type) == TypeClass::Tensor &&
                       models::hasRole(lastPart(fact.name.view()), "asks_device");
  static const Name keyword("device");
  const bool isAskedLate = isLateBound(fact) && (models::hasRole(lastPart(fact.name.view()), "asks_device") ||
                                                 models::hasRole(lastPart(fact.name.view()), "names_gpus") ||
                                                 std::find(fact.captures.begin(), fact.captures.end(),
                                                           keyword) != fact.captures.end());
  return isAsked || isAskedLate || types.classOf(fact.type) == TypeClass::Device ||
         std::any_of(fact.operands.begin(), fact.operands.end(), [&](const Operand &operand) {
           return types.classOf(operand.type) == TypeClass::Device;
         });
}

bool hasField(const Program &program, Name className, std::string_view field) {
  const Type *type = program.type(className);
  return type && (std::any_of(type->fields.begin(), type->fields.end(),
                              [&](const Field &each) { return each.name.view() == field; }) ||
                  std::any_of(type->bases.begin(), type->bases.end(),
                              [&](Name base) { return hasField(program, base, field); }));
}

// The member of its object that a method moves, or the path from one: x of self.x.to(..), which C++ may write
// as x.to(..).
Name movedMember(const Program &program, const Function &function, const Fact &fact) {
  const std::string_view name = lastPart(fact.name.view());
  if (fact.kind != FactKind::Call || fact.operands.empty() || (name != "to" && name != "cuda") ||
      (fact.isDiscarded && fact.operands[0].type == Name("at::Tensor")))
    return {};
  std::string_view of = fact.operands[0].text.view();
  for (const std::string_view object : {"self.", "this->"})
    if (startsWith(of, object))
      of.remove_prefix(object.size());
  return hasField(program, function.className, of.substr(0, of.find_first_of(".-"))) ? Name(of) : Name();
}

// The parameter that x.to(y.device) moves, where y is another one; empty where the fact is none of these.
Name movedParameter(const Function &function, const Fact &fact) {
  static constexpr std::string_view ofDevice = ".device";
  if (!isLateBound(fact) || lastPart(fact.name.view()) != "to" || fact.operands.size() < 2)
    return {};
  const std::string_view to = fact.operands[1].text.view();
  const auto isParameter = [&](std::string_view name) {
    return std::any_of(function.locals.begin(), function.locals.begin() + function.paramCount,
                       [&](const Variable &parameter) { return parameter.name.view() == name; });
  };
  const Name moved = fact.operands[0].text;
  return endsWith(to, ofDevice) && isParameter(moved.view()) &&
                 isParameter(to.substr(0, to.size() - ofDevice.size()))
             ? moved
             : Name();
}

// The initialiser of a static local stands between the test of its flag and the setting of it.
bool initialisesStatic(const Block &block) {
  for (const Fact &fact : block.facts)
    if (fact.kind == FactKind::Global && endsWith(fact.name.view(), initialisedSuffix))
      return block.terminator.kind == TerminatorKind::Jump;
  return false;
}

} // namespace

namespace {

// Can a value of a type hold a tensor, module or device, at any depth?
class DeviceTypes {
public:
  explicit DeviceTypes(const Types &types) : types(types) {}

  bool holds(Name type) {
    auto [entry, isNew] = known.emplace(type, false);
    if (isNew) {
      // Of this question only: what a type in a cycle is found to hold depends on where one began.
      std::set<Name> seen{type};
      entry->second = search(type, seen);
    }
    return entry->second;
  }

private:
  bool search(Name type, std::set<Name> &seen) const {
    auto inside = [&](Name part) { return seen.insert(part).second && search(part, seen); };
    switch (types.classOf(type)) {
    case TypeClass::Tensor:
    case TypeClass::Device:
    case TypeClass::Options:
    case TypeClass::Holder:
    case TypeClass::AnyModule:
    case TypeClass::Example:
      return true;
    case TypeClass::List:
    case TypeClass::Map:
    case TypeClass::Optional:
    case TypeClass::Pointer:
      return inside(types.inner(type));
    case TypeClass::Pair:
    case TypeClass::Tuple:
    case TypeClass::Variant: {
      const std::vector<Name> parts = types.parts(type);
      return std::any_of(parts.begin(), parts.end(), inside);
    }
    case TypeClass::Record: {
      if (types.isModule(type))
        return true;
      const Type *record = types.program.type(type);
      if (record && !record->isProject && std::any_of(record->args.begin(), record->args.end(), inside))
        return true; // a class template of a library, such as what std::bind returns
      return record && std::any_of(record->fields.begin(), record->fields.end(),
                                   [&](const Field &field) { return inside(field.type); });
    }
    case TypeClass::Function: // a callable over tensors
      return type.view().find("at::Tensor") != std::string_view::npos;
    default:
      return false;
    }
  }

  const Types &types;
  std::map<Name, bool> known;
};

bool isOfTorch(std::string_view name, const DistributedNames &names) {
  return models::hasRole(firstScope(name), "library") || runsPython(name) || initialises(name, names) ||
         isListed(names.loaders, name) || isListed(names.launchers, name);
}

// device_map options are fields, keys and Python text; no tensor need be near.
bool speaksOfDeviceMap(const Fact &fact) {
  const bool mayBeKey =
      fact.kind == FactKind::Field || fact.kind == FactKind::Call || fact.literal == LiteralKind::String;
  return mayBeKey && !models::findRole(fact.name.view(), "map_text").empty();
}

// A kernel, or a library that works on GPUs: what it gets may be the memory of a tensor.
bool worksOnGpus(const Types &types, const Fact &fact) {
  if (fact.kind != FactKind::Call)
    return false;
  if (fact.isLaunch || types.takesStream(fact))
    return true;
  const std::string_view library =
      scopeOf(fact.name.view()).empty() ? prefixOfLibrary(fact.name.view()) : std::string_view();
  return !library.empty() && !models::rows(std::string(library) + "::*").empty();
}

// Functions that touch tensors, modules or devices, then everything that calls them.
std::set<Name> findDevicesMatter(const Program &program, const Types &types, const DistributedNames &names) {
  std::set<Name> matter;
  std::map<Name, std::vector<Name>> callers;
  std::vector<Name> work;
  DeviceTypes deviceTypes(types);
  auto add = [&](Name id) {
    if (matter.insert(id).second)
      work.push_back(id);
  };
  for (Name id : program.order) {
    const Function &function = *program.function(id);
    auto touches = [&](const Variable &variable) { return deviceTypes.holds(variable.type); };
    if (std::any_of(function.locals.begin(), function.locals.end(), touches))
      add(id);
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts) {
        const std::string_view name = fact.name.view();
        if (deviceTypes.holds(fact.type) || isOfTorch(name, names) || speaksOfDeviceMap(fact) ||
            worksOnGpus(types, fact))
          add(id);
        if (!fact.target.empty())
          callers[fact.target].push_back(id);
      }
  }
  for (const auto &[base, overriders] : program.overriders)
    for (Name overrider : overriders)
      callers[overrider].insert(callers[overrider].end(), callers[base].begin(), callers[base].end());
  while (!work.empty()) {
    const Name id = work.back();
    work.pop_back();
    for (Name caller : callers[id])
      add(caller);
  }
  return matter;
}

/// What the constructors and the destructor of a class do to globals. Pairs of a global and a field.
struct ScopeWrites {
  std::set<Name> written;
  std::set<std::pair<Name, Name>> saved, restored;
};

// Which field a constructor keeps the value of a global in, and which the destructor gives back.
void notePairs(const std::vector<const Fact *> &expression, bool isConstructor, ScopeWrites &writes) {
  std::map<Reg, Name> globals, fields;
  for (const Fact *fact : expression) {
    const Reg first = fact->operands.empty() ? NoReg : fact->operands[0].reg;
    if (fact->kind == FactKind::Global)
      globals[fact->result] = fact->name;
    else if (fact->kind == FactKind::Field)
      fields[fact->result] = fact->name;
    else if (fact->kind == FactKind::Load && globals.count(first))
      globals[fact->result] = globals[first];
    else if (fact->kind == FactKind::Load && fields.count(first))
      fields[fact->result] = fields[first];
    if (!assigns(*fact) || fact->operands.size() != 2)
      continue;
    const Reg second = fact->operands[1].reg;
    if (isConstructor && fields.count(first) && globals.count(second))
      writes.saved.emplace(globals[second], fields[first]);
    if (!isConstructor && globals.count(first) && fields.count(second))
      writes.restored.emplace(globals[first], fields[second]);
  }
}

// What a destructor gives back as a constructor found it is changed for a scope only.
void addUnscoped(const std::map<Name, ScopeWrites> &classes, std::set<Name> &written) {
  for (const auto &[name, writes] : classes)
    for (Name global : writes.written)
      if (std::none_of(writes.saved.begin(), writes.saved.end(), [&, &of = writes](const auto &pair) {
            return pair.first == global && of.restored.count(pair);
          }))
        written.insert(global);
}

bool registersKernel(const Fact &fact) { return models::effect(fact.name.view(), "register_kernel"); }
bool exports(const Fact &fact) { return models::hasRole(fact.name.view(), "exports"); }

// The functions that a full expression hands to a call that `takes` them.
void addHanded(const std::vector<const Fact *> &expression, bool (*takes)(const Fact &),
               std::set<Name> &handed) {
  if (std::any_of(expression.begin(), expression.end(),
                  [&](const Fact *fact) { return fact->kind == FactKind::Call && takes(*fact); }))
    for (const Fact *fact : expression)
      if (fact->kind == FactKind::Closure)
        handed.insert(fact->target);
}

} // namespace

namespace {

/// What each function calls, constructs with, makes a closure of, or may call through a base class.
std::map<Name, std::set<Name>> calleesIn(const Program &program) {
  std::map<Name, std::set<Name>> callees;
  for (Name id : program.order)
    for (const Block &block : program.function(id)->blocks)
      for (const Fact &fact : block.facts) {
        if (fact.target.empty())
          continue;
        callees[id].insert(fact.target);
        if (auto overriders = program.overriders.find(fact.target);
            fact.isVirtual && overriders != program.overriders.end())
          callees[id].insert(overriders->second.begin(), overriders->second.end());
      }
  return callees;
}

// Does `function` hold a device guard, itself or in an object of a class in `holding`?
bool holdsGuard(const Types &types, const Function &function, const std::set<Name> &holding) {
  return std::any_of(function.blocks.begin(), function.blocks.end(), [&](const Block &block) {
    return std::any_of(block.facts.begin(), block.facts.end(), [&](const Fact &fact) {
      return fact.kind == FactKind::Construct && (isGuard(types, fact.type) || holding.count(fact.type));
    });
  });
}

// A guard ends with its scope: it concerns what is called in it, and not what a caller outside calls.
std::set<Name> calledUnderGuards(const Program &program, const Types &types) {
  std::set<Name> holding; // classes whose constructors make a guard
  std::vector<Name> work;
  for (bool isNew = true; isNew;) {
    isNew = false;
    work.clear();
    for (Name id : program.order)
      if (const Function &function = *program.function(id); holdsGuard(types, function, holding)) {
        work.push_back(id);
        isNew |= function.isConstructor && holding.insert(function.className).second;
      }
  }
  std::set<Name> called;
  for (Name id : program.order) {
    const Function &function = *program.function(id);
    if (isBackward(types, function)) {
      called.insert(id);
      work.push_back(id);
    }
  }
  const std::map<Name, std::set<Name>> callees =
      work.empty() ? std::map<Name, std::set<Name>>() : calleesIn(program);
  while (!work.empty()) {
    const Name id = work.back();
    work.pop_back();
    if (const auto of = callees.find(id); of != callees.end())
      for (Name callee : of->second)
        if (called.insert(callee).second)
          work.push_back(callee);
  }
  return called;
}

} // namespace

std::string folderOf(const Function &function) {
  const std::string_view file = function.where.file.view();
  return std::string(file.substr(0, file.rfind('/') + 1));
}

bool isBackward(const Types &types, const Function &function) {
  return lastPart(function.name.view()) == "backward" &&
         types.derivesFrom(function.className, "torch::autograd::Function");
}

bool isWrittenLater(const Program &program, const Usage &usage, Name type, Name field) {
  return usage.writtenFields.count(field) ||
         (!hidden::isHidden(field) &&
          std::any_of(usage.setsAny.begin(), usage.setsAny.end(),
                      [&](Name owner) { return isOrDerivesFrom(program, type, owner); }));
}

Usage scanUsage(const Program &program, const Types &types, const DistributedNames &names) {
  Usage usage;
  std::map<Name, std::set<Member>> writtenBy;
  std::map<Name, Name> enclosing; // of lambdas
  std::map<Name, ScopeWrites> classes;
  LateCalls lateCalls;
  usage.devicesMatter = findDevicesMatter(program, types, names);
  usage.underGuard = calledUnderGuards(program, types);
  usage.backends = backendsOf(program);
  for (Name id : program.order) {
    const Function &function = *program.function(id);
    const bool isGlobalInit =
        std::find(program.globalInits.begin(), program.globalInits.end(), id) != program.globalInits.end();
    ScopeWrites *scope =
        function.isConstructor || function.isDestructor ? &classes[function.className] : nullptr;
    usage.hasMain |= function.isMain;
    if (takesDevice(types, function)) {
      usage.takesDevice.insert(id);
      usage.deviceFolders.insert(folderOf(function));
    }
    const bool isTest = isUnitTest(function);
    std::vector<const Fact *> expression;
    References references;
    const auto endExpression = [&](bool initialises) {
      if (!initialises) {
        const Way written = scanExpression(program, types, expression, references);
        if (!function.isConstructor && !function.isModel)
          writtenBy[id].insert(written.fields.begin(), written.fields.end());
        (scope ? scope->written : usage.writtenGlobals)
            .insert(written.globals.begin(), written.globals.end());
      }
      addHanded(expression, registersKernel, usage.kernels);
      addHanded(expression, exports, usage.exported);
      if (!function.isModel)
        lateCalls.add(expression, function);
      if (movesOwnModule(expression))
        usage.movesOwn.insert(id);
      if (scope)
        notePairs(expression, function.isConstructor, *scope);
      expression.clear();
    };
    for (const Block &block : function.blocks) {
      const bool initialises = isGlobalInit || initialisesStatic(block);
      for (const Fact &fact : block.facts) {
        // A function whose address is taken may be called from anywhere: it stays an entry.
        const Function *target = fact.target.empty() ? nullptr : program.function(fact.target);
        const bool takesAddress = fact.kind == FactKind::Closure && !(target && target->isLambda);
        const bool ofTest = isTest || (isOfTestFile(function) && target && !isOfTestFile(*target));
        if (!fact.target.empty() && fact.target != id && !takesAddress && !isCompanion(id) && !ofTest) {
          usage.called.insert(fact.target);
          if (auto overriders = program.overriders.find(fact.target);
              fact.isVirtual && overriders != program.overriders.end())
            usage.called.insert(overriders->second.begin(), overriders->second.end());
        }
        if (fact.kind == FactKind::Closure && target && target->isLambda)
          enclosing.emplace(fact.target, id);
        usage.movesModules |= movesModule(fact) || (fact.kind == FactKind::Opaque && !fact.operands.empty());
        if (asksForDevice(types, fact)) {
          usage.asksForDevice.insert(id);
          usage.deviceFolders.insert(folderOf(function));
        }
        if (models::hasRole(lastPart(fact.name.view()), "makes_there"))
          usage.makesThere.insert(id);
        if (const Name moved = movedMember(program, function, fact); !moved.empty() && isMover(function))
          usage.movers[&function].insert(moved);
        if (const Name moved = movedParameter(function, fact); !moved.empty())
          usage.movesParameter[{function.where.file, moved}].insert(id);
        const bool bringsToHost = models::hasRole(lastPart(fact.name.view()), "brings_to_host");
        if (bringsToHost)
          usage.bringsToHost.insert(id);
        if (isPython(function.where.file.view()) &&
            (bringsToHost || models::hasRole(lastPart(fact.name.view()), "made_to_move")))
          usage.deviceFolders.insert(folderOf(function));
        if (models::hasRole(lastPart(fact.name.view()), "leaves_autograd"))
          usage.leavesAutograd.insert(id);
        if (fact.kind == FactKind::Global && endsWith(fact.name.view(), initialisedSuffix))
          usage.staticFlags.insert(fact.name);
        if (!function.isConstructor)
          addLateWrites(function, fact, usage.writtenFields, usage.setsAny);
        usage.tellsGpusApart |= choosesGpu(types, fact) || isGuard(types, fact.type);
        if (fact.kind == FactKind::Call && models::effect(fact.name.view(), "set_current"))
          usage.setsDevice = true;
        if (fact.kind == FactKind::EndStatement)
          endExpression(initialises);
        else
          expression.push_back(&fact);
      }
      if (block.terminator.kind == TerminatorKind::Return && isPython(function.where.file.view()))
        endExpression(initialises);
    }
  }
  addUnscoped(classes, usage.writtenGlobals);
  LateCalls::Functions late = lateCalls.functions(program);
  usage.called.merge(late.called);
  usage.calledBySiblings = std::move(late.bySiblings);
  usage.calledWhileMaking = std::move(late.whileMaking);
  for (Name id : usage.exported)
    usage.called.erase(id);
  for (const auto &[id, members] : writtenBy) {
    Name writer = id;
    for (auto outer = enclosing.find(writer); outer != enclosing.end(); outer = enclosing.find(writer))
      writer = outer->second;
    const Function &function = *program.function(writer);
    for (const Member &member : members) {
      usage.writtenFields.insert(member.second);
      if (!areRelated(program, function.className, member.first))
        usage.writtenOutside.insert(member);
    }
  }
  return usage;
}

} // namespace devicetidy
