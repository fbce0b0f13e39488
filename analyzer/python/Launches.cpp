#include "analyzer/python/Launches.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/python/Process.h"

#include "LaunchScript.inc"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <set>

namespace devicetidy::python {
namespace {

constexpr int foldersAbove = 6; ///< of a program that may be the root of its project

bool loadsModels(const Unit &unit) {
  for (const auto &[id, function] : unit.functions)
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts)
        if (endsWith(fact.name.view(), "from_pretrained") || fact.name.view() == "device_map")
          return true;
  return false;
}

// The folder of the project that a file belongs to.
std::string rootOf(const std::string &path) {
  const auto parentOf = [](const std::string &of) { return llvm::sys::path::parent_path(of).str(); };
  std::string folder = parentOf(path);
  for (int above = 0; above < foldersAbove && folder.size() > 1; ++above, folder = parentOf(folder))
    for (const char *mark : {".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"})
      if (llvm::sys::fs::exists(folder + "/" + mark))
        return folder;
  return parentOf(path);
}

Location placeOf(const llvm::json::Object &launch, std::string_view command) {
  Location where;
  where.file = launch.getString("path").value_or("").str();
  where.line = where.endLine = static_cast<std::uint32_t>(launch.getInteger("line").value_or(1));
  where.column = static_cast<std::uint32_t>(launch.getInteger("column").value_or(0)) + 1;
  where.endColumn = where.column + static_cast<std::uint32_t>(command.size());
  return where;
}

// launched(command), where the command is.
Function functionFor(Name id, const std::string &command, const Location &where) {
  Function function;
  function.id = id;
  function.name = "@launch";
  function.hasBody = true;
  function.where = where;
  function.registerCount = 2;
  Fact text;
  text.kind = FactKind::Literal;
  text.literal = LiteralKind::String;
  text.name = command;
  text.result = 0;
  text.where = where;
  Fact call;
  call.kind = FactKind::Call;
  call.name = "python::library::dt.launched";
  call.isVirtual = true;
  call.result = 1;
  call.where = where;
  call.operands.emplace_back();
  call.operands.back().reg = 0;
  function.blocks.emplace_back();
  function.blocks.back().facts = {text, call};
  function.blocks.back().terminator.kind = TerminatorKind::Return;
  return function;
}

} // namespace

Name launchOf(const std::string &path) { return Name(path + ":@launch"); }

std::optional<Unit> lowerLaunches(const std::string &interpreter, const std::vector<Unit> &units) {
  std::set<std::string> programs, roots;
  for (const Unit &unit : units)
    for (const auto &[id, function] : unit.functions)
      if (function.isMain && std::any_of(units.begin(), units.end(), loadsModels)) {
        programs.insert(unit.mainFile.str());
        roots.insert(rootOf(unit.mainFile.str()));
      }
  std::string folders, error;
  for (const std::string &root : roots)
    folders += root + '\0';
  Answer answer;
  if (roots.empty() || !run(interpreter, {"-I", "-S", "-c", launchScript}, folders, nullptr, answer, error))
    return std::nullopt;
  llvm::Expected<llvm::json::Value> read = llvm::json::parse(answer.output);
  if (!read) {
    llvm::consumeError(read.takeError());
    return std::nullopt;
  }
  Unit unit;
  unit.joining = Joining::Everywhere;
  for (const llvm::json::Value &each : *read->getAsArray()) {
    const llvm::json::Object &launch = *each.getAsObject();
    const std::string command = launch.getString("command").value_or("").str();
    for (const llvm::json::Value &path : *launch.getArray("programs"))
      if (const std::string program = path.getAsString().value_or("").str(); programs.count(program)) {
        unit.functions.try_emplace(launchOf(program),
                                   functionFor(launchOf(program), command, placeOf(launch, command)));
        break;
      }
  }
  return unit.functions.empty() ? std::nullopt : std::optional(std::move(unit));
}

} // namespace devicetidy::python
