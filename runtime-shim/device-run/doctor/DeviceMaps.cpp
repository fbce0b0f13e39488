#include "doctor/ConfigFile.h"

#include "Text.h"

#include <fmt/format.h>

namespace devicerun::doctor {
namespace {

using nlohmann::json;
constexpr const char *kTopic = "device map";

const char *const kNext =
    "remove device_map (or set it to null) and let data-parallel or sharded training use all "
    "GPUs; or run one process without a launcher";

/// What a map means for a job, judged by what is written: the number of its entries, or the name of a
/// strategy.
void judge(const std::string &shown, std::size_t entries, const Machine &machine, bool fileIsDistributed,
           Diagnosis &diagnosis) {
  const bool distributed = machine.worldSize() > 1 || fileIsDistributed;
  if (entries <= 1) {
    if (machine.worldSize() > 1 &&
        (shown.find(":0}") != std::string::npos || shown.find(": 0}") != std::string::npos ||
         shown.find("cuda:0") != std::string::npos))
      diagnosis.warn(kTopic, "device-map-one-gpu",
                     fmt::format("device_map {} puts every rank on GPU 0", shown),
                     "leave the map out, or make it of LOCAL_RANK");
    else
      diagnosis.ok(kTopic, "device-map", fmt::format("device_map {}", shown));
    return;
  }
  if (distributed)
    diagnosis.problem(
        kTopic, "device-map-distributed",
        fmt::format("device_map {} spreads the model over the GPUs, which cannot be combined with "
                    "distributed training{}",
                    shown, machine.worldSize() > 1 ? fmt::format(" ({} ranks)", machine.worldSize()) : ""),
        kNext);
  else
    diagnosis.warn(kTopic, "device-map-single-process",
                   fmt::format("device_map {} works in a single process only; torchrun, accelerate launch or "
                               "deepspeed with several processes refuse it",
                               shown),
                   "for training on several GPUs remove it");
}

/// Strategies, such as "auto", are maps of several entries; a device's name is one of a single entry.
std::size_t entriesOfText(const std::string &text) {
  for (const char *strategy : {"auto", "balanced", "balanced_low_0", "sequential"})
    if (text == strategy)
      return 2;
  return 1;
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
      if (member.is_object())
        judge(member.size() > 3 ? fmt::format("of {} entries", member.size()) : member.dump(), member.size(),
              machine, distributed, diagnosis);
      else if (member.is_string())
        judge(member.dump(), entriesOfText(member.get<std::string>()), machine, distributed, diagnosis);
      else if (member.is_null())
        diagnosis.ok(kTopic, "device-map", "device_map is null");
    }
  if (value.is_array())
    for (const json &element : value)
      walk(element, file, machine, distributed, diagnosis);
}

std::size_t indentOf(std::string_view line) { return line.find_first_not_of(" \t-"); }

/// "key: value # comment" without the comment, quotes and blanks.
struct YamlLine {
  std::size_t indent = 0;
  std::string key, value;
};

std::string unquoted(std::string_view text) {
  std::string_view inner = trimmed(text);
  if (inner.size() >= 2 && (inner.front() == '"' || inner.front() == '\'') && inner.back() == inner.front())
    inner = inner.substr(1, inner.size() - 2);
  return std::string(inner);
}

std::optional<YamlLine> readLine(const std::string &line) {
  std::string text = line;
  for (std::size_t hash = text.find('#'); hash != std::string::npos; hash = text.find('#', hash + 1))
    if (hash == 0 || text[hash - 1] == ' ' || text[hash - 1] == '\t') {
      text.erase(hash);
      break;
    }
  const std::size_t indent = indentOf(text), colon = text.find(": ") != std::string::npos ? text.find(": ")
                                                     : !trimmed(text).empty() && trimmed(text).back() == ':'
                                                         ? text.rfind(':')
                                                         : std::string::npos;
  if (indent == std::string::npos || colon == std::string::npos || colon < indent)
    return std::nullopt;
  return YamlLine{indent, unquoted(std::string_view(text).substr(indent, colon - indent)),
                  unquoted(std::string_view(text).substr(colon + 1))};
}

/// The lines below a key that belong to it.
std::size_t entriesBelow(const std::vector<std::string> &lines, std::size_t key, std::size_t indent) {
  std::size_t count = 0;
  for (std::size_t i = key + 1; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty() || trimmed(lines[i]).front() == '#')
      continue;
    std::optional<YamlLine> line = readLine(lines[i]);
    if (!line || line->indent <= indent)
      break;
    ++count;
  }
  return count;
}

} // namespace

void checkDeviceMaps(const ConfigFile &file, const Machine &machine, bool distributed, Diagnosis &diagnosis) {
  walk(file.json(), file, machine, distributed, diagnosis);
}

void checkYamlDeviceMaps(const ConfigFile &file, const Machine &machine, bool distributed,
                         Diagnosis &diagnosis) {
  const std::vector<std::string> lines = split(file.text(), '\n');
  // Of accelerate's own files: MULTI_GPU, DEEPSPEED, FSDP..., or NO.
  for (const std::string &text : lines)
    if (std::optional<YamlLine> line = readLine(text); line && line->key == "distributed_type")
      distributed = distributed || (line->value != "NO" && !line->value.empty());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::optional<YamlLine> line = readLine(lines[i]);
    if (!line || line->key != "device_map")
      continue;
    diagnosis.setPlace(fmt::format("{}:{}", file.path(), i + 1));
    const std::size_t below = line->value.empty() ? entriesBelow(lines, i, line->indent) : 0;
    if (below > 0)
      judge(fmt::format("of {} entries", below), below, machine, distributed, diagnosis);
    else if (line->value.empty() || line->value == "null" || line->value == "~")
      diagnosis.ok(kTopic, "device-map", "device_map is null");
    else if (line->value.front() == '{')
      judge(line->value, split(line->value, ',').size(), machine, distributed, diagnosis);
    else
      judge('"' + line->value + '"', entriesOfText(line->value), machine, distributed, diagnosis);
  }
}

} // namespace devicerun::doctor
