#include "analyzer/driver/GraphCommand.h"

#include "analyzer/config/Suggest.h"
#include "analyzer/driver/Output.h"
#include "analyzer/driver/Parallel.h"
#include "analyzer/driver/Programs.h"
#include "analyzer/report/DevicePicture.h"
#include "analyzer/report/FunctionGraph.h"
#include "analyzer/solve/Solve.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;

/// Does `written` name `qualified`, whole or from the front of one of its parts on?
bool isSuffix(StringRef qualified, StringRef written) {
  return qualified == written || qualified.ends_with(("::" + written).str());
}

std::set<std::string> functionNames(const std::vector<Unit> &units) {
  std::set<std::string> names;
  for (const Unit &unit : units)
    for (const auto &[id, function] : unit.functions)
      if (function.hasBody && !function.isLambda && !StringRef(id.str()).contains(delegationMark) &&
          id != unit.globalInit)
        names.insert(function.name.str());
  return names;
}

/// The one function that the user means; a sentence in `error` when there is none.
std::string findFunction(const std::vector<Unit> &units, StringRef written, std::string &error) {
  const std::set<std::string> names = functionNames(units);
  if (names.count(written.str()))
    return written.str();
  std::vector<std::string> meant;
  for (const std::string &name : names)
    if (isSuffix(name, written))
      meant.push_back(name);
  if (meant.size() == 1)
    return meant.front();
  if (!meant.empty()) {
    error = fmt::format("--graph: '{}' may be {}; say which", written.str(),
                        fmt::join(llvm::ArrayRef(meant).take_front(8), ", "));
    return {};
  }
  std::set<std::string> parts;
  for (StringRef name : names)
    for (StringRef part = name;; part = part.split("::").second) {
      parts.insert(part.str());
      if (!part.contains("::"))
        break;
    }
  error = fmt::format("--graph: no function with a body is called '{}'{}", written.str(),
                      config::suggestion(written, {parts.begin(), parts.end()}));
  return {};
}

std::string drawn(const DeviceGraph &graph, const std::string &format) {
  if (format == "dot")
    return dotOf(graph);
  DeviceColours colours;
  for (const std::string &device : graph.devices)
    colours.add(device);
  colours.assign();
  return svgOf(graph, colours, "g", /*isStandalone=*/true) + "\n";
}

} // namespace

std::string drawGraph(std::vector<Unit> units, const FileSettings &settings, const Options &options,
                      bool &isWritten) {
  std::string error;
  orderUnits(units);
  const std::string name = findFunction(units, options.graph, error);
  if (name.empty())
    return error;
  FunctionGraph picture(name);
  const Programs programs = groupPrograms(units, LinkMap::of(units));
  for (const auto &members : programs.groups) {
    std::vector<Unit> parts;
    std::set<Name> files;
    for (std::size_t unit : members) {
      parts.push_back(units[unit]);
      for (const auto &[id, function] : units[unit].functions)
        if (function.name.str() == name)
          files.insert(function.where.file);
    }
    if (files.empty())
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
    remark(options, "no tensor or module of '" + name + "' is on a device that is known");
  const bool isSvg = options.graphFormat.empty() ? StringRef(options.output).ends_with(".svg")
                                                 : options.graphFormat == "svg";
  isWritten = writeOutput(options.output.empty() ? "-" : options.output, drawn(graph, isSvg ? "svg" : "dot"));
  return {};
}

} // namespace devicetidy::driver
