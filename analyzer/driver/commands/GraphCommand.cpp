#include "analyzer/driver/commands/GraphCommand.h"

#include "analyzer/config/Suggest.h"
#include "analyzer/driver/programs/Programs.h"
#include "analyzer/driver/support/Output.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/report/graph/DevicePicture.h"
#include "analyzer/report/graph/FunctionGraph.h"
#include "analyzer/solve/Solve.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;

/// Does `written` name `qualified`, whole or from the front of one of its parts on?
bool isSuffix(StringRef qualified, StringRef written) {
  return qualified == written || qualified.ends_with(("::" + written).str());
}

/// Where the functions with a body are, by qualified name: the first place of each file that has some.
using Definitions = std::map<std::string, std::map<Name, Location>>;

Definitions definitionsIn(const std::vector<Unit> &units) {
  Definitions found;
  for (const Unit &unit : units)
    for (const auto &[id, function] : unit.functions)
      if (function.hasBody && !function.isLambda && !StringRef(id.str()).contains(delegationMark) &&
          id != unit.globalInit) {
        Location &first =
            found[function.name.str()].try_emplace(function.where.file, function.where).first->second;
        first = std::min(first, function.where);
      }
  return found;
}

/// The definitions that are called `written`, in `files` only unless that is empty. As in C++, a name that
/// begins with "::" is whole.
Definitions matching(const Definitions &all, StringRef written, const std::set<Name> &files) {
  Definitions meant;
  const bool isWhole = written.consume_front("::");
  for (const auto &[name, places] : all)
    if (isWhole ? name == written : isSuffix(name, written))
      for (const auto &[file, where] : places)
        if (files.empty() || files.count(file))
          meant[name].emplace(file, where);
  // The whole name of one function may be the end of another's.
  if (const auto whole = meant.find(written.str()); whole != meant.end())
    return {*whole};
  return meant;
}

std::string unknownName(const Definitions &all, StringRef written) {
  std::set<std::string> parts;
  for (const auto &[name, places] : all)
    for (StringRef part = name;; part = part.split("::").second) {
      parts.insert(part.str());
      if (!part.contains("::"))
        break;
    }
  return fmt::format("--graph: no function with a body is called '{}'{}", written.str(),
                     config::suggestion(written, {parts.begin(), parts.end()}));
}

struct Meant {
  std::string name; ///< qualified
  Name file;
};

/// The function that the user means, in one of `asked` (the files of FILES) where some is called so; nothing,
/// with a sentence in `error`, when there is none or there are several.
std::optional<Meant> findFunction(const std::vector<Unit> &units, StringRef written,
                                  const std::set<Name> &asked, std::string &error) {
  constexpr std::size_t most = 8;
  const Definitions all = definitionsIn(units);
  Definitions meant = matching(all, written, asked);
  if (meant.empty())
    meant = matching(all, written, {});
  if (meant.empty()) {
    error = unknownName(all, written);
    return std::nullopt;
  }
  std::vector<std::string> names, places;
  for (const auto &[name, files] : meant)
    names.push_back(name);
  if (names.size() > 1) {
    error = fmt::format("--graph: '{}' may be {}; say which", written.str(),
                        fmt::join(llvm::ArrayRef(names).take_front(most), ", "));
    return std::nullopt;
  }
  const std::map<Name, Location> &files = meant.begin()->second;
  for (const auto &[file, where] : files)
    places.push_back(fmt::format("{}:{}", file.str(), where.line));
  if (places.size() > 1) {
    error =
        fmt::format("--graph: {} files define '{}': {}; name the one that is meant, as FILES", places.size(),
                    names.front(), fmt::join(llvm::ArrayRef(places).take_front(most), ", "));
    return std::nullopt;
  }
  return Meant{names.front(), files.begin()->first};
}

std::string drawn(const DeviceGraph &graph, const std::string &format, const std::string &root) {
  if (format == "dot")
    return dotOf(graph, root);
  DeviceColours colours;
  for (const std::string &device : graph.devices)
    colours.add(device);
  colours.assign();
  return svgOf(graph, colours, "g", /*isStandalone=*/true) + "\n";
}

} // namespace

std::string drawGraph(std::vector<Unit> units, const std::set<Name> &asked, const FileSettings &settings,
                      const Options &options, const std::string &root, bool &isWritten) {
  std::string error;
  orderUnits(units);
  const std::optional<Meant> meant = findFunction(units, options.graph, asked, error);
  if (!meant)
    return error;
  const std::set<Name> files{meant->file};
  FunctionGraph picture(meant->name, meant->file);
  const Programs programs = groupPrograms(units, LinkMap::of(units));
  for (const Group &group : programs.groups) {
    std::vector<Unit> parts;
    bool hasFunction = false;
    for (std::size_t unit : group.units) {
      parts.push_back(units[unit]);
      adapt(parts.back(), unit, group);
      for (const auto &[id, function] : units[unit].functions)
        hasFunction |=
            function.hasBody && function.name.str() == meant->name && function.where.file == meant->file;
    }
    if (!hasFunction)
      continue;
    SolveOptions solving = settings.solveOptions(parts);
    solving.placedIn = &files;
    const std::string first = parts.front().mainFile.str();
    inParallel(Task::Solve, 1, 1, [&](std::size_t) {
      if (!runGuarded([&] {
            const Program program = link(std::move(parts));
            picture.add(program, solve(program, solving));
          }))
        complain("the analyzer itself failed on the program of " + first);
    });
  }
  const DeviceGraph graph = picture.take();
  if (graph.empty())
    remark(options.quiet, "no tensor or module of '" + meant->name + "' is on a device that is known");
  const bool isSvg = options.graphFormat.empty() ? StringRef(options.output).ends_with(".svg")
                                                 : options.graphFormat == "svg";
  isWritten =
      writeOutput(options.output.empty() ? "-" : options.output, drawn(graph, isSvg ? "svg" : "dot", root));
  return {};
}

} // namespace devicetidy::driver
