#include "analyzer/solve/questions/Mistakes.h"

#include "analyzer/solve/questions/Unregistered.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace devicetidy {
namespace {

// Were the two operations run in one function, or one in a function that (indirectly) called the other's?
bool onOnePath(const Conflict &a, const Conflict &b) {
  if (a.functionId == b.functionId)
    return true;
  if (a.entryId != b.entryId)
    return false;
  const auto &shorter = a.callers.size() < b.callers.size() ? a.callers : b.callers;
  const auto &longer = a.callers.size() < b.callers.size() ? b.callers : a.callers;
  return shorter.size() != longer.size() && std::equal(shorter.rbegin(), shorter.rend(), longer.rbegin(),
                                                       [](const CallSite &x, const CallSite &y) {
                                                         return x.where == y.where &&
                                                                x.function == y.function;
                                                       });
}

// The operand that was left behind: the one on the CPU where there is one.
const PlacedOperand &culprit(const Conflict &conflict) {
  if (isAboutMemory(conflict.kind))
    return conflict.first;
  return conflict.first.device == "cpu" && conflict.second.device != "cpu" ? conflict.first : conflict.second;
}

// Is `later` told with `earlier`, which has the same cause? What only a caller can tell is told once.
bool isToldWith(const Conflict &earlier, const Conflict &later) {
  if (earlier.kind == ConflictKind::Load && later.kind == ConflictKind::Load)
    return true; // whatever meets what was loaded
  return later.level == Level::Latent || (earlier.level == later.level && onOnePath(earlier, later));
}

/// Where the reason for a conflict is; what a function was given has no place, but a name in it.
using Cause = std::pair<Location, std::string>;

// What only a caller can tell of the memory that a function reads is one thing, whatever it reads.
std::optional<Cause> causeOf(const Program &program, const Conflict &conflict) {
  if (conflict.level == Level::Latent && conflict.kind == ConflictKind::HostAccess)
    if (const Function *function = program.function(Name(conflict.functionId)))
      return Cause{function->where, {}};
  const Step *cause = decidingStep(culprit(conflict));
  if (cause && cause->where.valid())
    return Cause{cause->where, {}};
  if (cause && cause->kind == StepKind::Parameter)
    return Cause{{}, conflict.functionId + " " + cause->subject};
  return std::nullopt;
}

/// Which function a place is in.
class Enclosing {
public:
  explicit Enclosing(const Program &program) : program(program) {}

  /// Null outside of all functions with a body.
  const Function *of(const Location &place) {
    if (byLine.empty())
      collect();
    const auto file = byLine.find(place.file);
    if (file == byLine.end())
      return nullptr;
    auto next = file->second.upper_bound(place.line);
    if (next == file->second.begin())
      return nullptr;
    --next;
    return next->second.second < place.line ? nullptr : next->second.first;
  }

  /// Does `caller` call `callee`, directly or not?
  bool calls(const Function &caller, const Function &callee) {
    std::set<const Function *> seen{&caller};
    std::vector<const Function *> open{&caller};
    while (!open.empty()) {
      const Function &next = *open.back();
      open.pop_back();
      if (&next == &callee)
        return true;
      for (const Block &block : next.blocks)
        for (const Fact &fact : block.facts)
          if (const Function *target = fact.target.empty() ? nullptr : program.function(fact.target))
            if (seen.insert(target).second)
              open.push_back(target);
    }
    return false;
  }

private:
  void collect() {
    for (Name id : program.order) {
      const Function &function = *program.function(id);
      byLine[function.where.file].emplace(function.where.line, std::pair(&function, function.lastLine()));
    }
  }

  const Program &program;
  std::map<Name, std::map<std::uint32_t, std::pair<const Function *, std::uint32_t>>>
      byLine; ///< first and last
};

// Did `maker` call what fails?
bool isOfCaller(Enclosing &enclosing, const Conflict &conflict, const Function *maker) {
  return maker && std::any_of(conflict.callers.begin(), conflict.callers.end(),
                              [&](const CallSite &call) { return enclosing.of(call.where) == maker; });
}

// Where the mistake was made, if that is not in the function that fails nor in what it calls: where the
// device of what was left behind was decided, or, for a model, where the program used it.
Location madeElsewhere(const Program &program, Enclosing &enclosing, const Conflict &conflict) {
  const Function *failing = program.function(Name(conflict.functionId));
  const Step *cause = decidingStep(culprit(conflict));
  if (conflict.callers.empty() || !failing || !cause || !cause->where.valid())
    return {};
  const Function *maker = enclosing.of(cause->where);
  const bool isCallers = isOfCaller(enclosing, conflict, maker);
  if (!isCallers && maker && enclosing.calls(*failing, *maker))
    return {};
  const bool isOfModule = cause->kind == StepKind::ModuleMade && maker && maker->isConstructor;
  return isOfModule && !isCallers ? conflict.callers.back().where : cause->where;
}

bool haveSameCallers(const Conflict &a, const Conflict &b) {
  return std::equal(a.callers.begin(), a.callers.end(), b.callers.begin(), b.callers.end(),
                    [](const CallSite &x, const CallSite &y) { return x.where == y.where; });
}

// Is it said in the same words, and none of the callers' doing?
bool isSaidTwice(Enclosing &enclosing, const Conflict &a, const Conflict &b) {
  const auto isSame = [](const PlacedOperand &x, const PlacedOperand &y) {
    return x.text == y.text && x.device == y.device;
  };
  const auto isCallers = [&](const Conflict &conflict) {
    const Step *cause = decidingStep(culprit(conflict));
    return !cause || !cause->where.valid() || isOfCaller(enclosing, conflict, enclosing.of(cause->where));
  };
  return a.operation == b.operation && isSame(a.first, b.first) && isSame(a.second, b.second) &&
         !isCallers(a) && !isCallers(b);
}

// Two conflicts of one operation are one mistake when what was left behind comes from one place, or when they
// are alternatives of one call. What only a caller can tell is told once, and not beside what callers do.
bool isSameMistake(const Program &program, Enclosing &enclosing, const Conflict &a, const Conflict &b) {
  return isSaidTwice(enclosing, a, b) || a.level == Level::Latent || b.level == Level::Latent ||
         a.callers.empty() || b.callers.empty() || causeOf(program, a) == causeOf(program, b) ||
         haveSameCallers(a, b);
}

} // namespace

void keepMistakes(const Program &program, std::vector<Conflict> &conflicts) {
  Enclosing enclosing(program);
  std::vector<const Conflict *> surestFirst;
  for (const Level level : {Level::Definite, Level::Likely, Level::Latent})
    for (const bool hasCallers : {true, false})
      for (const Conflict &conflict : conflicts)
        if (conflict.level == level && conflict.callers.empty() != hasCallers)
          surestFirst.push_back(&conflict);
  std::map<Location, std::vector<const Conflict *>> byPlace;
  std::map<Cause, std::vector<const Conflict *>> byCause;
  std::vector<Conflict> kept;
  for (const Conflict *conflict : surestFirst) {
    std::vector<const Conflict *> &here = byPlace[conflict->where];
    if (std::any_of(here.begin(), here.end(), [&](const Conflict *other) {
          return isSameMistake(program, enclosing, *other, *conflict);
        }))
      continue;
    here.push_back(conflict);
    const std::optional<Cause> cause = causeOf(program, *conflict);
    if (cause) {
      std::vector<const Conflict *> &earlier = byCause[*cause];
      if (std::any_of(earlier.begin(), earlier.end(),
                      [&](const Conflict *other) { return isToldWith(*other, *conflict); }))
        continue;
      earlier.push_back(conflict);
    }
    kept.push_back(*conflict);
    kept.back().cause = madeElsewhere(program, enclosing, *conflict);
  }
  conflicts = std::move(kept);
}

} // namespace devicetidy
