#include "doctor/ConfigFile.h"

#include "base/Text.h"
#include "doctor/YamlLines.h"

#include <fmt/format.h>

#include <regex>

namespace devicerun::doctor {
namespace {

using nlohmann::json;
constexpr const char *kTopic = "device map";

const char *const kNext =
    "remove device_map (or set it to null) and let data-parallel or sharded training use all "
    "GPUs; or run one process without a launcher";

/// A device_map as written.
struct Map {
  std::string shown;
  std::size_t entries = 1;
  bool onFirstGpu = false; ///< its only entry is GPU 0
};

bool isFirstGpu(std::string_view device) { return device == "0" || device == "cuda:0" || device == "cuda"; }

/// What a map means for a job, judged by what is written: the number of its entries, or the name of a
/// strategy.
void judge(const Map &map, const Machine &machine, bool fileIsDistributed, Diagnosis &diagnosis) {
  const bool distributed = machine.worldSize() > 1 || fileIsDistributed;
  if (map.entries <= 1) {
    if (machine.worldSize() > 1 && map.onFirstGpu)
      diagnosis.warn(kTopic, "device-map-one-gpu",
                     fmt::format("device_map {} puts every rank on GPU 0", map.shown),
                     "leave the map out, or make it of LOCAL_RANK");
    else
      diagnosis.ok(kTopic, "device-map", fmt::format("device_map {}", map.shown));
    return;
  }
  if (distributed)
    diagnosis.problem(
        kTopic, "device-map-distributed",
        fmt::format("device_map {} spreads the model over the GPUs, which cannot be combined with "
                    "distributed training{}",
                    map.shown,
                    machine.worldSize() > 1 ? fmt::format(" ({} ranks)", machine.worldSize()) : ""),
        kNext);
  else
    diagnosis.warn(kTopic, "device-map-single-process",
                   fmt::format("device_map {} works in a single process only; torchrun, accelerate launch or "
                               "deepspeed with several processes refuse it",
                               map.shown),
                   "for training on several GPUs remove it");
}

/// Strategies, such as "auto", are maps of several entries; a device's name is one of a single entry.
Map mapOfText(const std::string &text) {
  Map map{'"' + text + '"', 1, isFirstGpu(text)};
  for (const char *strategy : {"auto", "balanced", "balanced_low_0", "sequential"})
    if (text == strategy)
      map.entries = 2;
  return map;
}

std::string textOf(const json &device) {
  return device.is_string() ? device.get<std::string>() : device.dump();
}

Map mapOfObject(const json &object) {
  Map map{object.size() > 3 ? fmt::format("of {} entries", object.size()) : object.dump(), object.size(),
          false};
  map.onFirstGpu = object.size() == 1 && isFirstGpu(textOf(*object.begin()));
  return map;
}

void noMap(const std::string &shown, Diagnosis &diagnosis) {
  diagnosis.problem(
      kTopic, "device-map-kind",
      fmt::format("device_map is {}, which is neither a map nor a device nor a strategy", shown),
      "write \"auto\", a device, or a map of module names to devices");
}

void checkMember(const json &member, const Machine &machine, bool distributed, Diagnosis &diagnosis) {
  if (member.is_object())
    judge(mapOfObject(member), machine, distributed, diagnosis);
  else if (member.is_string())
    judge(mapOfText(member.get<std::string>()), machine, distributed, diagnosis);
  else if (member.is_number_integer())
    judge({member.dump(), 1, isFirstGpu(member.dump())}, machine, distributed, diagnosis);
  else if (member.is_null())
    diagnosis.ok(kTopic, "device-map", "device_map is null");
  else
    noMap(member.is_array() ? "a list" : member.dump(), diagnosis);
}

void walk(const json &value, const ConfigFile &file, const Machine &machine, bool distributed,
          Diagnosis &diagnosis) {
  if (value.is_object())
    for (const auto &[name, member] : value.items()) {
      if (name != "device_map") {
        walk(member, file, machine, distributed, diagnosis);
        continue;
      }
      diagnosis.setPlace(file.placeOf(name));
      checkMember(member, machine, distributed, diagnosis);
    }
  if (value.is_array())
    for (const json &element : value)
      walk(element, file, machine, distributed, diagnosis);
}

/// The lines below a key that belong to it.
std::size_t entriesBelow(const std::vector<std::string> &lines, std::size_t key, std::size_t indent) {
  std::size_t count = 0;
  for (std::size_t i = key + 1; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty() || trimmed(lines[i]).front() == '#')
      continue;
    std::optional<YamlLine> line = readYamlLine(lines[i]);
    if (!line || line->indent <= indent)
      break;
    ++count;
  }
  return count;
}

/// The value of device_map within {...} on one line, up to the comma or bracket that ends it.
std::optional<std::string> flowValue(const std::string &line) {
  static const std::regex key(R"([{,]\s*["']?device_map["']?\s*:\s*)");
  std::smatch found;
  if (!std::regex_search(line, found, key))
    return std::nullopt;
  const std::string rest = found.suffix();
  int depth = 0;
  std::size_t end = 0;
  for (; end < rest.size(); ++end) {
    depth += rest[end] == '{' || rest[end] == '[';
    if (depth == 0 && (rest[end] == ',' || rest[end] == '}'))
      break;
    depth -= rest[end] == '}' || rest[end] == ']';
  }
  return unquotedYaml(rest.substr(0, end));
}

/// "{"": 0}" or "{embed: 0, h: 1}".
Map mapOfFlow(const std::string &text) {
  const std::vector<std::string> entries = split(text.substr(1, text.find_last_not_of(" }")), ',');
  Map map{text, entries.size(), false};
  const std::size_t colon = entries.front().rfind(": ");
  const std::string device = unquotedYaml(
      entries.front().substr(colon == std::string::npos ? entries.front().rfind(':') + 1 : colon + 1));
  map.onFirstGpu = entries.size() == 1 && isFirstGpu(device);
  return map;
}

void checkYamlValue(const std::string &value, const Machine &machine, bool distributed,
                    Diagnosis &diagnosis) {
  if (value.empty() || value == "null" || value == "~")
    diagnosis.ok(kTopic, "device-map", "device_map is null");
  else if (value.front() == '[')
    noMap("a list", diagnosis);
  else if (value.front() == '{')
    judge(mapOfFlow(value), machine, distributed, diagnosis);
  else
    judge(mapOfText(value), machine, distributed, diagnosis);
}

/// Whether the first line below a key is an element of its list.
bool isListBelow(const std::vector<std::string> &lines, std::size_t key) {
  const std::size_t column = lines[key].find_first_not_of(" \t");
  for (std::size_t i = key + 1; i < lines.size(); ++i) {
    const std::size_t start = lines[i].find_first_not_of(" \t\r");
    if (start != std::string::npos && lines[i][start] != '#')
      return lines[key][column] != '-' && start >= column && trimmed(lines[i]).substr(0, 2) == "- ";
  }
  return false;
}

} // namespace

void checkDeviceMaps(const ConfigFile &file, const Machine &machine, bool distributed, Diagnosis &diagnosis) {
  walk(file.json(), file, machine, distributed, diagnosis);
}

void checkYamlDeviceMaps(const ConfigFile &file, const Machine &machine, bool distributed,
                         Diagnosis &diagnosis) {
  const std::vector<std::string> lines = split(file.text(), '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    diagnosis.setPlace(fmt::format("{}:{}", file.path(), i + 1));
    std::optional<YamlLine> line = readYamlLine(lines[i]);
    if (!line || line->key != "device_map") {
      if (std::optional<std::string> value = flowValue(withoutYamlComment(lines[i])))
        checkYamlValue(*value, machine, distributed, diagnosis);
      continue;
    }
    const std::size_t below = line->value.empty() ? entriesBelow(lines, i, line->indent) : 0;
    if (below > 0)
      judge({fmt::format("of {} entries", below), below, false}, machine, distributed, diagnosis);
    else if (line->value.empty() && isListBelow(lines, i))
      noMap("a list", diagnosis);
    else
      checkYamlValue(line->value, machine, distributed, diagnosis);
  }
}

} // namespace devicerun::doctor
