#include "records/Records.h"

#include "base/Text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace devicerun {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct RecordFile {
  RecordSource source;
  fs::path path;
};

std::optional<RecordSource> sourceOf(const std::string &stem, const std::string &kind) {
  std::vector<std::string> parts = split(stem, '-');
  if (parts.size() != 3 || parts[0] != kind)
    return std::nullopt;
  std::optional<std::int64_t> rank = parseInteger(parts[1]), pid = parseInteger(parts[2]);
  if (!rank || !pid)
    return std::nullopt;
  return RecordSource{static_cast<int>(*rank), static_cast<long>(*pid)};
}

std::vector<RecordFile> recordFiles(const std::string &folder, const std::string &kind) {
  std::vector<RecordFile> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".jsonl")
      if (std::optional<RecordSource> source = sourceOf(entry->path().stem(), kind))
        files.push_back({*source, entry->path()});
  std::sort(files.begin(), files.end(), [](const RecordFile &a, const RecordFile &b) {
    return std::tie(a.source.rank, a.source.pid) < std::tie(b.source.rank, b.source.pid);
  });
  return files;
}

std::string shapeOf(const json &argument) {
  auto shape = argument.find("shape");
  if (shape == argument.end() || !shape->is_array())
    return "";
  std::string text;
  for (const json &size : *shape)
    text += (text.empty() ? "" : ", ") + size.dump();
  return "[" + text + "]";
}

Made madeOf(const json &argument) {
  auto made = argument.find("made");
  if (made == argument.end())
    return {};
  if (made->is_string())
    return {"created", "", {made->get<std::string>()}};
  if (!made->is_object())
    return {};
  Made result = {textOf(*made, "how"), textOf(*made, "op"), textsOf(*made, "stack")};
  auto copied = made->find("copied");
  if (copied != made->end() && copied->is_array())
    for (const json &place : *copied)
      if (place.is_object())
        result.copied.push_back(textsOf(place, "stack"));
  return result;
}

ErrorArgument argumentOf(const json &argument) {
  return {integerOf(argument, "index"),
          integerOf(argument, "element", -1),
          textOf(argument, "name"),
          textOf(argument, "device"),
          shapeOf(argument),
          madeOf(argument)};
}

} // namespace

std::string textOf(const json &object, const char *member) {
  auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double numberOf(const json &object, const char *member, double fallback) {
  auto found = object.find(member);
  return found != object.end() && found->is_number() ? found->get<double>() : fallback;
}

int integerOf(const json &object, const char *member, int fallback) {
  double value = numberOf(object, member, fallback);
  constexpr double most = std::numeric_limits<int>::max();
  return std::isfinite(value) ? static_cast<int>(std::clamp(value, -most, most)) : fallback;
}

std::uint64_t countOf(const json &object, const char *member) {
  constexpr double most = 9.0e18;
  double value = numberOf(object, member);
  return std::isfinite(value) ? static_cast<std::uint64_t>(std::clamp(value, 0.0, most)) : 0;
}

std::vector<std::string> textsOf(const json &object, const char *member) {
  std::vector<std::string> texts;
  auto found = object.find(member);
  if (found != object.end() && found->is_array())
    for (const json &entry : *found)
      if (entry.is_string())
        texts.push_back(entry.get<std::string>());
  return texts;
}

void readRecords(const std::string &folder, const std::string &kind, const RecordReader &reader) {
  for (const RecordFile &file : recordFiles(folder, kind)) {
    std::ifstream stream(file.path, std::ios::binary);
    std::string line;
    while (std::getline(stream, line)) {
      if (stream.eof())
        break; // the writer was ended in the middle of it
      json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (record.is_object())
        reader(file.source, record);
    }
  }
}

std::vector<ErrorArgument> argumentsOf(const json &record) {
  std::vector<ErrorArgument> list;
  auto arguments = record.find("args");
  if (arguments != record.end() && arguments->is_array())
    for (const json &argument : *arguments)
      if (argument.is_object())
        list.push_back(argumentOf(argument));
  return list;
}

std::string nameOf(const ErrorArgument &argument) {
  std::string name = argument.name.empty() ? fmt::format("argument {}", argument.index) : argument.name;
  return argument.element < 0 ? name : fmt::format("{}[{}]", name, argument.element);
}

std::vector<ErrorRecord> readErrors(const std::string &folder) {
  std::multimap<double, ErrorRecord> byTime;
  auto read = [&](const RecordSource &source, const json &record) {
    if (textOf(record, "kind") != "error")
      return;
    ErrorRecord error{source,
                      textOf(record, "error"),
                      textOf(record, "class"),
                      textOf(record, "op"),
                      numberOf(record, "ts_us"),
                      static_cast<long>(countOf(record, "tid")),
                      {},
                      {},
                      {},
                      textsOf(record, "stack")};
    if (auto backward = record.find("backward"); backward != record.end() && backward->is_object()) {
      error.backwardNode = textOf(*backward, "node");
      error.forwardStack = textsOf(*backward, "stack");
    }
    error.arguments = argumentsOf(record);
    byTime.emplace(error.time, std::move(error));
  };
  readRecords(folder, "errors", read);
  readRecords(folder, "reached", read);
  std::vector<ErrorRecord> errors;
  for (auto &[time, error] : byTime)
    errors.push_back(std::move(error));
  return errors;
}

std::vector<UncaughtException> readUncaught(const std::string &folder) {
  std::vector<UncaughtException> exceptions;
  readRecords(folder, "errors", [&](const RecordSource &source, const json &record) {
    if (textOf(record, "kind") == "uncaught")
      exceptions.push_back({source, textOf(record, "error"), numberOf(record, "ts_us"),
                            textsOf(record, "stack"), static_cast<long>(countOf(record, "tid"))});
  });
  return exceptions;
}

std::vector<ReachedFrame> readReached(const std::string &folder) {
  std::vector<ReachedFrame> frames;
  readRecords(folder, "reached", [&](const RecordSource &source, const json &record) {
    if (textOf(record, "kind") == "reached")
      frames.push_back({source, textOf(record, "frame")});
  });
  return frames;
}

} // namespace devicerun
