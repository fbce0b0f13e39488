#include "analyzer/lsp/Units.h"

#include "analyzer/driver/support/Parallel.h"
#include "analyzer/frontend/Lower.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace devicetidy::lsp {
namespace {

using driver::CompileCommand;

cache::Digest keyOf(const CompileCommand &command) {
  return cache::UnitCache::key(command.directory, command.file, command.arguments);
}

/// How many directories two paths share.
std::ptrdiff_t nearness(const std::string &a, const std::string &b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return std::count(a.begin(), end, '/');
}

} // namespace

Units::Units(Database &database, Stores &stores, std::function<void(bool)> making)
    : database(database), stores(stores),
      lowerOptions{[&database](const std::string &path) { return database.project().isProject(path); }},
      preambles(*stores.preambles(), lowerOptions, std::move(making)) {}

/// What the cache knows, once.
void Units::load() {
  if (std::exchange(isLoaded, true))
    return;
  for (const CompileCommand &command : database.commands().commands)
    if (database.project().isOwnPlace(command.file))
      memberFor(command);
  std::vector<std::size_t> all(members.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = i;
  for (std::size_t each : loadContext(all))
    keepIntact(each, {});
}

bool Units::knows(const std::string &file) {
  load();
  return includerOf(file) != members.size();
}

bool Units::update(const DocumentMap &documents, const std::set<std::string> &own,
                   const std::atomic<bool> &stop) {
  load();
  chooseRoots(own);
  settleContext(documents);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].isRoot && !parseRoot(i, documents, stop))
      return false;
  mayHaveChanged = false;
  if (!hasLinks)
    linkMap = driver::LinkMap::of(units);
  hasLinks = true;
  return true;
}

void Units::refresh() {
  mayHaveChanged = true;
  hasLinks = false;
  preambles.refresh();
}

bool Units::isChangedOnDisk(const DocumentMap &documents) const {
  cache::FileStates states; // most headers are part of several units
  return llvm::any_of(members, [&](const Member &member) {
    return !isAsBefore(member, documents, states) || (!member.isRoot && hasNewEntry(member));
  });
}

/// A run of the command puts what it has read into the cache.
bool Units::hasNewEntry(const Member &member) const {
  const bool isWanted = !member.isKnown || member.isPartial;
  return isWanted && !member.entry.empty() &&
         stampNumber(cache::FileStates().stamp(Name(member.entry))) != member.entryState;
}

void Units::noteEntry(Member &member) {
  if (!member.entry.empty())
    member.entryState = stampNumber(cache::FileStates().stamp(Name(member.entry)));
}

std::string Units::whyLeftOut(const std::string &file) const {
  return database.isHip(file) ? "it is HIP" : std::string();
}

std::vector<std::size_t> Units::roots() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].isRoot)
      result.push_back(i);
  return result;
}

std::set<Name> Units::rootFiles() const {
  std::set<Name> result;
  for (const Member &member : members)
    if (member.isRoot)
      for (const std::string &file : member.files)
        result.insert(Name(file));
  return result;
}

/// The member for a command, added where the order of linking has it: by file and objects.
std::size_t Units::memberFor(const CompileCommand &command) {
  const auto isBefore = [](const Member &member, const CompileCommand &each) {
    return std::tie(member.command.file, member.command.objects) < std::tie(each.file, each.objects);
  };
  auto place = std::lower_bound(members.begin(), members.end(), command, isBefore);
  for (auto same = place; same != members.end() && same->command.file == command.file; ++same)
    if (same->command == command)
      return static_cast<std::size_t>(same - members.begin());
  hasLinks = false;
  const auto index = place - members.begin();
  members.insert(place, Member{command, false, false, {command.file}, {}, false, {}, 0});
  units.insert(units.begin() + index, Unit());
  clearUnit(static_cast<std::size_t>(index));
  return static_cast<std::size_t>(index);
}

void Units::clearUnit(std::size_t index) {
  const CompileCommand &command = members[index].command;
  Unit &unit = units[index] = Unit();
  unit.mainFile = command.file;
  unit.objects.assign(command.objects.begin(), command.objects.end());
  members[index].isKnown = members[index].isPartial = false;
}

void Units::setUnit(std::size_t index, Unit unit) {
  Member &member = members[index];
  member.isKnown = true;
  member.isPartial = false;
  member.files = {member.command.file};
  for (Name file : unit.files)
    if (database.project().isProject(file.str()))
      member.files.insert(file.str());
  unit.objects.assign(member.command.objects.begin(), member.command.objects.end());
  units[index] = std::move(unit);
}

/// Takes from the cache what is true of files on disk.
std::vector<std::size_t> Units::loadContext(const std::vector<std::size_t> &which) {
  if (!stores.facts() || which.empty())
    return which;
  cache::FileStates states;
  cache::UnitCache cache(*stores.facts(), states, lowerOptions.isProjectFile);
  std::vector<std::optional<cache::CachedUnit>> found(which.size());
  driver::inParallel(driver::Task::LookUpInCache, which.size(), std::thread::hardware_concurrency(),
                     [&](std::size_t i) { found[i] = cache.find(keyOf(members[which[i]].command)); });
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < which.size(); ++i) {
    Member &member = members[which[i]];
    member.entry = stores.facts()->path("units", keyOf(member.command));
    noteEntry(member);
    if (found[i]) {
      setUnit(which[i], std::move(found[i]->unit));
      member.state = stateOf(member, {}, states); // as the cache has seen them
    } else {
      missing.push_back(which[i]);
    }
  }
  return missing;
}

/// The unit to look at a header through: the nearest that includes it, or none.
std::size_t Units::includerOf(const std::string &header) const {
  std::size_t best = members.size();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].files.count(header))
      continue;
    if (members[i].isRoot)
      return i;
    if (best == members.size() ||
        nearness(members[i].command.file, header) > nearness(members[best].command.file, header))
      best = i;
  }
  return best;
}

void Units::chooseRoots(const std::set<std::string> &own) {
  std::vector<std::string> headers;
  for (Member &member : members)
    member.isRoot = false;
  std::vector<CompileCommand> wanted;
  for (const std::string &file : own)
    if (!database.isListed(file))
      headers.push_back(file);
    else if (const auto command = database.commandFor(file))
      wanted.push_back(*command);
  for (const CompileCommand &command : wanted)
    members[memberFor(command)].isRoot = true;
  for (const std::string &header : headers) {
    if (const std::size_t includer = includerOf(header); includer != members.size())
      members[includer].isRoot = true;
    else if (const auto command = database.commandFor(header))
      members[memberFor(*command)].isRoot = true;
  }
}

/// Units that are not open are true as long as what they read is as on disk, and in part after that.
void Units::settleContext(const DocumentMap &documents) {
  std::vector<std::size_t> outdated;
  cache::FileStates states;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Member &member = members[i];
    if (member.isRoot)
      continue;
    const bool readsUnsaved = llvm::any_of(member.files, [&](const std::string &file) {
      const auto found = documents.find(file);
      return found != documents.end() && !found->second.isSaved;
    });
    if (readsUnsaved) { // the cache has nothing for this; what it gets meanwhile is looked up later
      keepIntact(i, documents);
      if (mayHaveChanged)
        noteEntry(member);
    } else if (mayHaveChanged && (!member.isKnown || member.isPartial || !isAsBefore(member, {}, states))) {
      outdated.push_back(i);
    }
  }
  for (std::size_t each : loadContext(outdated))
    keepIntact(each, {});
}

/// After an edit of a header, what a unit says of other files still tells most of what its code does: until
/// it is read again only what comes from the changed files is taken out. The open units have newer facts.
void Units::keepIntact(std::size_t index, const DocumentMap &documents) {
  Member &member = members[index];
  cache::FileStates states;
  const State before = std::exchange(member.state, stateOf(member, documents, states));
  if (!member.isKnown)
    return;
  std::set<Name> changed;
  for (const auto &[file, number] : member.state)
    if (const auto old = before.find(file); old == before.end() || old->second != number)
      changed.insert(Name(file));
  if (changed.empty())
    return;
  if (changed.count(Name(member.command.file)))
    return clearUnit(index);
  Unit &unit = units[index];
  const auto dropIn = [&changed](auto &things) {
    for (auto each = things.begin(); each != things.end();)
      each = changed.count(each->second.where.file) ? things.erase(each) : std::next(each);
  };
  dropIn(unit.functions);
  dropIn(unit.types);
  dropIn(unit.globals);
  member.isPartial = true;
  hasLinks = false;
}

Units::State Units::stateOf(const Member &member, const DocumentMap &documents, cache::FileStates &states) {
  State result;
  for (const std::string &file : member.files)
    result[file] = textNumber(file, documents, states);
  return result;
}

bool Units::isAsBefore(const Member &member, const DocumentMap &documents, cache::FileStates &states) {
  return llvm::all_of(member.state, [&](const auto &entry) {
    return textNumber(entry.first, documents, states) == entry.second;
  });
}

bool Units::parseRoot(std::size_t index, const DocumentMap &documents, const std::atomic<bool> &stop) {
  Member &member = members[index];
  cache::FileStates before;
  const State state = stateOf(member, documents, before);
  const bool mayNowBeWhole = member.isPartial || (mayHaveChanged && !units[index].parseErrors.empty());
  if (member.isKnown && state == member.state && !mayNowBeWhole)
    return true;
  const CompileCommand command = member.command;
  frontend::UnsavedFiles unsaved;
  for (const auto &[file, document] : documents)
    if (!document.isSaved)
      unsaved.emplace(file, *document.text);
  cache::FileStates states;
  std::optional<cache::UnitCache> cache;
  if (stores.facts() && unsaved.empty()) {
    cache.emplace(*stores.facts(), states, lowerOptions.isProjectFile);
    if (auto found = cache->find(keyOf(command))) {
      setUnit(index, std::move(found->unit));
      member.state = stateOf(member, documents, states);
      return true;
    }
  }
  const frontend::Preamble *preamble = preambles.preambleFor(command, unsaved);
  Unit unit;
  FileTrace trace;
  const bool survived = driver::runGuarded([&] {
    unit = frontend::lowerTranslationUnit(command.directory, command.file, command.arguments, lowerOptions,
                                          {&trace, preamble, nullptr, true, &unsaved, &stop});
  });
  if (stop)
    return false;
  if (!survived) {
    unit = Unit();
    unit.mainFile = command.file;
    unit.hasFatalError = true;
    unit.parseErrors.push_back(command.file + ":1:1: the analyzer itself failed on this file");
  }
  if (cache && survived && unit.parseErrors.empty())
    cache->keep(keyOf(command), unit, trace);
  setUnit(index, std::move(unit));
  cache::FileStates after;
  member.state = stateOf(member, documents, after);
  for (auto &[file, number] : member.state) // what changed while it was parsed is to be seen next time
    if (const auto old = state.find(file); old != state.end())
      number = old->second;
  return true;
}

} // namespace devicetidy::lsp
