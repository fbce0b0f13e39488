#include "records/TraceMerge.h"

#include "base/AtomicFile.h"
#include "base/Text.h"
#include "records/Records.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

namespace devicerun {
namespace {

using nlohmann::json;

/// A track for each thread of each process, numbered as they appear.
class Tracks {
public:
  int number(const RecordSource &source, long thread) {
    auto [found, isNew] = numbers.try_emplace({source.rank, source.pid, thread}, 0);
    if (isNew)
      found->second = ++count;
    return found->second;
  }
  void nameThread(const RecordSource &source, long thread, const std::string &name) {
    threadNames[{source.pid, thread}] = name;
  }

  /// The events that name processes and tracks.
  std::vector<json> metadata() const {
    std::vector<json> events;
    int lastRank = -1;
    long firstProcess = 0;
    for (const auto &[key, number] : numbers) {
      const auto &[rank, pid, thread] = key;
      if (rank != lastRank) {
        events.push_back(event("process_name", rank, 0, {{"name", fmt::format("rank {}", rank)}}));
        events.push_back(event("process_sort_index", rank, 0, {{"sort_index", rank}}));
        lastRank = rank;
        firstProcess = pid;
      }
      std::string name = nameOf(pid, thread);
      if (pid != firstProcess)
        name += fmt::format(" of process {}", pid);
      events.push_back(event("thread_name", rank, number, {{"name", name}}));
      events.push_back(event("thread_sort_index", rank, number, {{"sort_index", number}}));
    }
    return events;
  }

private:
  /// Threads inherit the name of the one that starts them: only a name of its own says something.
  std::string nameOf(long pid, long thread) const {
    const auto nameOfThread = [&](long each) {
      auto named = threadNames.find({pid, each});
      return named == threadNames.end() ? std::string() : named->second;
    };
    if (thread == pid)
      return "main";
    const std::string name = nameOfThread(thread);
    if (name.empty() || name == nameOfThread(pid))
      return fmt::format("thread {}", thread);
    return name;
  }

  static json event(const char *name, int rank, int track, json arguments) {
    return {{"name", name}, {"ph", "M"}, {"pid", rank}, {"tid", track}, {"args", std::move(arguments)}};
  }

  std::map<std::tuple<int, long, long>, int> numbers;
  std::map<std::pair<long, long>, std::string> threadNames;
  int count = 0;
};

std::string deviceOf(const json &record) {
  std::string device = textOf(record, "device");
  return device.empty() ? "cpu" : device;
}

std::string siteOf(const std::vector<std::string> &stack, const std::string &op, FrameResolver &resolver) {
  const std::optional<Frame> place = resolver.innermost(stack, op);
  return place ? fmt::format("{} {}", displayPlace(*place),
                             place->function.substr(0, place->function.find('(')))
               : "";
}

/// {"self": "cuda:0 [8, 4]"}
json operandsOf(const std::vector<ErrorArgument> &arguments) {
  json operands = json::object();
  for (const ErrorArgument &argument : arguments)
    operands[nameOf(argument)] = argument.device + (argument.shape.empty() ? "" : " " + argument.shape);
  return operands;
}

class Merger {
public:
  Merger(FrameResolver &resolver, std::ostream &out) : resolver(resolver), out(out) {}

  TraceSummary run(const std::string &folder) {
    double start = std::numeric_limits<double>::infinity();
    readRecords(folder, "trace", [&](const RecordSource &source, const json &record) {
      if (record.contains("ts_us"))
        start = std::min(start, numberOf(record, "ts_us"));
      for (const std::string &frame : textsOf(record, "stack"))
        resolver.want(frame);
      if (textOf(record, "kind") == "thread")
        tracks.nameThread(source, threadOf(record), textOf(record, "name"));
    });
    const std::vector<ErrorRecord> errors = readErrors(folder);
    for (const ErrorRecord &error : errors) {
      if (error.time > 0)
        start = std::min(start, error.time);
      for (const std::string &frame : error.stack)
        resolver.want(frame);
    }
    origin = std::isfinite(start) ? start : 0;
    out << R"({"displayTimeUnit": "ms", "traceEvents": [)";
    readRecords(folder, "trace",
                [this](const RecordSource &source, const json &record) { write(source, record); });
    for (const ErrorRecord &error : errors)
      writeError(error);
    for (const json &event : tracks.metadata())
      emit(event);
    out << "\n]}\n";
    return std::move(summary);
  }

private:
  static long threadOf(const json &record) { return static_cast<long>(countOf(record, "tid")); }

  void write(const RecordSource &source, const json &record) {
    std::string kind = textOf(record, "kind");
    if (kind == "op")
      writeOperator(source, record);
    else if (kind == "copy")
      writeCopy(source, record);
    else if (kind == "memory")
      writeMemory(source, record);
  }

  json complete(const RecordSource &source, const json &record, const std::string &name, const char *category,
                int track) const {
    return {{"name", name},
            {"cat", category},
            {"ph", "X"},
            {"ts", numberOf(record, "ts_us") - origin},
            {"dur", std::max(0.0, numberOf(record, "dur_us"))},
            {"pid", source.rank},
            {"tid", track}};
  }

  void writeOperator(const RecordSource &source, const json &record) {
    ++summary.operators;
    const std::string op = textOf(record, "op");
    json event = complete(source, record, op, "operator", tracks.number(source, threadOf(record)));
    event["args"]["device"] = deviceOf(record);
    describe(event, argumentsOf(record), siteOf(textsOf(record, "stack"), op, resolver));
    if (int stream = integerOf(record, "stream"); stream != 0)
      event["args"]["stream"] = stream;
    emit(event);
  }

  void writeCopy(const RecordSource &source, const json &record) {
    std::string from = textOf(record, "from"), to = textOf(record, "to");
    std::uint64_t bytes = countOf(record, "bytes");
    std::string op = textOf(record, "op"), site = siteOf(textsOf(record, "stack"), op, resolver);
    std::string route = fmt::format("{} -> {}", from, to);
    summary.routes[{from, to}].add(bytes);
    summary.sites[{from, to}][site].add(bytes);
    int track = tracks.number(source, threadOf(record));
    json event = complete(source, record, fmt::format("{} {}", route, formatBytes(bytes)), "copy", track);
    event["args"] = {{"from", from}, {"to", to}, {"bytes", bytes}, {"op", op}};
    describe(event, argumentsOf(record), site);
    emit(event);
  }

  /// An arrow on the thread that raised it, also where the program caught it.
  void writeError(const ErrorRecord &error) {
    const std::string text = error.text.substr(0, error.text.find('\n'));
    json event = {{"name", error.op.empty() ? "device error" : "device error in " + error.op},
                  {"cat", "error"},
                  {"ph", "i"},
                  {"s", "t"},
                  {"ts", std::max(0.0, error.time - origin)},
                  {"pid", error.source.rank},
                  {"tid", tracks.number(error.source, error.thread ? error.thread : error.source.pid)},
                  {"args", {{"error", text}}}};
    describe(event, error.arguments, siteOf(error.stack, error.op, resolver));
    emit(event);
  }

  static void describe(json &event, const std::vector<ErrorArgument> &arguments, const std::string &site) {
    if (!arguments.empty())
      event["args"]["operands"] = operandsOf(arguments);
    if (!site.empty())
      event["args"]["at"] = site;
  }

  void writeMemory(const RecordSource &source, const json &record) {
    std::uint64_t &peak = summary.peaks[{source.rank, deviceOf(record)}];
    peak = std::max(peak, countOf(record, "peak"));
    json counts = {{"peak", countOf(record, "peak")}};
    if (record.contains("now"))
      counts["now"] = countOf(record, "now");
    emit({{"name", "memory " + deviceOf(record)},
          {"ph", "C"},
          {"ts", record.contains("ts_us") ? numberOf(record, "ts_us") - origin : 0.0},
          {"pid", source.rank},
          {"args", counts}});
  }

  void emit(const json &event) {
    out << (first ? "\n" : ",\n") << event.dump(-1, ' ', false, json::error_handler_t::replace);
    first = false;
  }

  FrameResolver &resolver;
  std::ostream &out;
  Tracks tracks;
  TraceSummary summary;
  double origin = 0;
  bool first = true;
};

template <typename Key> std::vector<std::pair<Key, Traffic>> most(const std::map<Key, Traffic> &traffic) {
  std::vector<std::pair<Key, Traffic>> sorted(traffic.begin(), traffic.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::tie(b.second.bytes, a.first) < std::tie(a.second.bytes, b.first);
  });
  return sorted;
}

std::string describe(const Traffic &traffic) {
  return fmt::format("{} in {} {}", formatBytes(traffic.bytes), traffic.copies,
                     traffic.copies == 1 ? "copy" : "copies");
}

} // namespace

TraceSummary mergeTrace(const std::string &folder, const std::string &file, FrameResolver &resolver) {
  AtomicFile output(file);
  TraceSummary summary = Merger(resolver, output.stream()).run(folder);
  output.commit();
  return summary;
}

std::string describeTraffic(const TraceSummary &summary) {
  constexpr std::size_t mostSites = 3;
  std::string text;
  for (const auto &[route, traffic] : most(summary.routes)) {
    text += fmt::format("  {} -> {}: {}\n", route.first, route.second, describe(traffic));
    std::vector<std::pair<std::string, Traffic>> sites = most(summary.sites.at(route));
    for (std::size_t i = 0; i < std::min(sites.size(), mostSites); ++i)
      text += fmt::format("    {} at {}\n", describe(sites[i].second),
                          sites[i].first.empty() ? "an unknown line (compile with -g)" : sites[i].first);
    if (sites.size() > mostSites)
      text += fmt::format("    and {} more places\n", sites.size() - mostSites);
  }
  if (text.empty())
    text = "  no tensor was copied between devices\n";
  for (const auto &[where, bytes] : summary.peaks)
    if (bytes > 0)
      text += fmt::format("  rank {}: at most {} on {}\n", where.first, formatBytes(bytes), where.second);
  return text;
}

} // namespace devicerun
