#include "analyzer/driver/programs/UnitGraph.h"

#include "analyzer/facts/Binary.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <map>

namespace devicetidy::driver {
namespace {

/// Types in unnamed namespaces may repeat from unit to unit.
bool isLocalToUnit(Name type) { return type.view().find("(anonymous") != std::string_view::npos; }

template <typename Visitor> void forEachFact(const Function &function, Visitor visit) {
  for (const Block &block : function.blocks)
    for (const Fact &fact : block.facts)
      visit(fact);
}

/// The folder of the target that the object belongs to: CMakeFiles/TARGET.dir of CMake, TARGET.p of Meson;
/// empty for other builds.
std::string targetOf(llvm::StringRef object) {
  namespace path = llvm::sys::path;
  for (llvm::StringRef at = path::parent_path(object); !at.empty(); at = path::parent_path(at)) {
    const llvm::StringRef name = path::filename(at);
    if (name.ends_with(".p") ||
        (name.ends_with(".dir") && path::filename(path::parent_path(at)) == "CMakeFiles"))
      return at.str();
  }
  return {};
}

/// What a unit defines, each with a hash of all that is known of it.
std::map<Name, std::size_t> contentsOf(const Unit &unit) {
  std::map<Name, std::size_t> result;
  const auto hashed = [](Unit &&part) { return std::hash<std::string>()(writeBinary({std::move(part)})); };
  for (const auto &[id, function] : unit.functions)
    if (function.hasBody && !function.isMain && id != unit.globalInit) {
      Unit part;
      part.functions[id] = function;
      result[id] = hashed(std::move(part));
    }
  for (const auto &[id, type] : unit.types)
    if (type.isProject && !type.isLambda && !isLocalToUnit(id)) {
      Unit part;
      part.types[id].fields = type.fields; // members depend on what else the unit uses
      part.types[id].bases = type.bases;
      result["type " + id.str()] = hashed(std::move(part));
    }
  return result;
}

bool areDifferent(const std::map<Name, std::size_t> &a, const std::map<Name, std::size_t> &b) {
  return std::any_of(a.begin(), a.end(), [&](const auto &each) {
    const auto other = b.find(each.first);
    return other != b.end() && other->second != each.second;
  });
}

} // namespace

UnitGraph::UnitGraph(const std::vector<Unit> &units)
    : units(units), relations(units.size()), isMain(units.size()) {
  Definitions definitions;
  for (UnitIndex i = 0; i < units.size(); ++i) {
    if (units[i].joining != Joining::Linked)
      continue;
    addDefinitions(i, definitions);
    for (Name object : units[i].objects)
      if (std::string target = targetOf(object.str()); !target.empty())
        relations[i].targets.insert(std::move(target));
  }
  for (const auto &[id, all] : definitions) {
    addRivals(all);
    std::vector<UnitIndex> &list = definers[id];
    for (const Definition &each : all)
      if (list.empty() || list.back() != each.unit)
        list.push_back(each.unit);
  }
  addVariants();
  for (UnitIndex i = 0; i < units.size(); ++i)
    if (units[i].joining == Joining::Linked)
      addNeeds(i);
}

bool UnitGraph::isOneProgram() const {
  return mains <= 1 && std::all_of(relations.begin(), relations.end(),
                                   [](const auto &each) { return each.rivals.empty(); });
}

std::vector<UnitIndex> UnitGraph::sameTarget(UnitIndex unit) const {
  std::vector<UnitIndex> result;
  if (!relations[unit].targets.empty())
    for (UnitIndex i = 0; i < units.size(); ++i)
      if (i != unit && sharesTarget(unit, i))
        result.push_back(i);
  return result;
}

void UnitGraph::addDefinitions(UnitIndex index, Definitions &definitions) {
  const Unit &unit = units[index];
  for (const auto &[id, function] : unit.functions) {
    if (!function.hasBody)
      continue;
    if (function.isMain) {
      mains += isMain[index] ? 0 : 1;
      isMain[index] = true;
    } else if (id != unit.globalInit) {
      definitions[id].push_back({index, function.where});
    }
  }
  for (const auto &[id, type] : unit.types)
    if (type.isProject && !type.isLambda && type.where.valid() && !isLocalToUnit(id))
      definitions["type " + id.str()].push_back({index, type.where});
  if (const auto init = unit.functions.find(unit.globalInit); init != unit.functions.end())
    forEachFact(init->second, [&](const Fact &fact) {
      if (fact.kind == FactKind::Global)
        definitions["global " + fact.name.str()].push_back({index, {}});
    });
}

void UnitGraph::addRivals(const std::vector<Definition> &all) {
  const auto likeFirst = [&](const Definition &each) { return each.where == all.front().where; };
  if (std::all_of(all.begin(), all.end(), likeFirst))
    return; // nearly always: a header that many units include
  for (const Definition &a : all)
    for (const Definition &b : all)
      if (a.unit != b.unit && a.where != b.where)
        relations[a.unit].rivals.insert(b.unit);
}

/// One source compiled in two ways defines the same names in the same places, but not always to the same
/// effect. Where it takes care to define different names (one namespace per processor, say), both can be
/// linked.
void UnitGraph::addVariants() {
  std::map<Name, std::vector<UnitIndex>> byFile;
  for (UnitIndex i = 0; i < units.size(); ++i)
    if (units[i].joining == Joining::Linked)
      byFile[units[i].mainFile].push_back(i);
  for (const auto &[file, variants] : byFile) {
    if (variants.size() < 2)
      continue;
    std::vector<std::map<Name, std::size_t>> contents;
    for (UnitIndex each : variants)
      contents.push_back(contentsOf(units[each]));
    for (std::size_t a = 0; a < variants.size(); ++a)
      for (std::size_t b = a + 1; b < variants.size(); ++b)
        if (areDifferent(contents[a], contents[b])) {
          relations[variants[a]].rivals.insert(variants[b]);
          relations[variants[b]].rivals.insert(variants[a]);
        }
  }
}

void UnitGraph::addNeeds(UnitIndex index) {
  std::unordered_set<Name> used;
  const Unit &unit = units[index];
  const auto useClass = [&](Name name) {
    const auto type = unit.types.find(name);
    if (type == unit.types.end() || !type->second.isProject)
      return;
    used.insert(type->second.constructors.begin(), type->second.constructors.end());
    used.insert(type->second.methods.begin(), type->second.methods.end());
  };
  for (const auto &[id, function] : unit.functions)
    forEachFact(function, [&](const Fact &fact) {
      if (fact.kind == FactKind::Global)
        used.insert("global " + fact.name.str());
      else if (fact.target)
        used.insert(fact.target);
      for (Name type : fact.templateTypes) // make_shared<Net> constructs one, Sequential calls its forward
        useClass(type);
    });
  std::set<const std::vector<UnitIndex> *> choices;
  for (Name name : used) {
    const auto found = definers.find(name);
    if (found == definers.end())
      continue;
    const std::vector<UnitIndex> &list = found->second;
    if (std::binary_search(list.begin(), list.end(), index))
      continue;
    if (list.size() == 1)
      relations[index].onlyDefiners.insert(list.front());
    else
      choices.insert(&list);
    for (UnitIndex each : list)
      relations[each].users.insert(index);
  }
  relations[index].choices.assign(choices.begin(), choices.end());
}

bool UnitGraph::sharesTarget(UnitIndex a, UnitIndex b) const {
  const auto &left = relations[a].targets, &right = relations[b].targets;
  return std::any_of(left.begin(), left.end(),
                     [&](const std::string &each) { return right.count(each) != 0; });
}

std::ptrdiff_t UnitGraph::commonBeginning(UnitIndex a, UnitIndex b) const {
  const std::string &left = units[a].mainFile.str(), &right = units[b].mainFile.str();
  return std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first - left.begin();
}

} // namespace devicetidy::driver
