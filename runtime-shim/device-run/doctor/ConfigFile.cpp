#include "doctor/ConfigFile.h"

#include "RunError.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace devicerun::doctor {
namespace {

std::string readFile(const std::string &path) {
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error))
    throw RunError(
        ExitUsage,
        fmt::format("cannot read the configuration file {}: {}; name an existing file", path,
                    std::filesystem::is_directory(path, error) ? "it is a folder" : std::strerror(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

ConfigFile::ConfigFile(std::string path, std::string text)
    : name(std::move(path)), content(std::move(text)) {}

bool ConfigFile::parse(Diagnosis &diagnosis) {
  try {
    parsed = parseJson(content);
  } catch (const nlohmann::json::parse_error &error) {
    const std::size_t offset = std::min(content.size(), error.byte > 0 ? error.byte - 1 : 0);
    const std::size_t lineStart = offset == 0 ? 0 : content.rfind('\n', offset - 1) + 1;
    diagnosis.setPlace(fmt::format("{}:{}", placeAt(offset), offset - lineStart + 1));
    const bool readable = parseAsDeepSpeed();
    if (readable)
      diagnosis.warn("config", "not-strict-json",
                     "this has comments or surplus commas: DeepSpeed reads it, Hugging Face's Trainer and "
                     "accelerate refuse it",
                     "remove them, unless the program gives the file to DeepSpeed itself");
    else
      diagnosis.problem(
          "config", "not-json", "this is no valid JSON",
          "look for a missing or surplus comma, quotes or a comment there; JSON has no comments");
    diagnosis.setPlace("");
    if (!readable)
      return false;
  }
  return usable(diagnosis);
}

bool ConfigFile::parseAsDeepSpeed() {
  try {
    parsed = parseJson(asStrictJson(content));
  } catch (const nlohmann::json::parse_error &) {
    return false;
  }
  return isDeepSpeedConfig(parsed.root);
}

bool ConfigFile::usable(Diagnosis &diagnosis) const {
  diagnosis.setPlace(name);
  if (parsed.tooDeep)
    diagnosis.problem("config", "too-deep", fmt::format("this is nested deeper than {} levels", kDeepestJson),
                      "name the configuration file of a training program");
  else if (!parsed.root.is_object())
    diagnosis.warn("config", "no-object",
                   fmt::format("this is {}, not a JSON object: it configures nothing",
                               parsed.root.is_array() ? "a list" : parsed.root.dump().substr(0, 40)),
                   "name the configuration file of a training program");
  diagnosis.setPlace("");
  return !parsed.tooDeep && parsed.root.is_object();
}

std::string ConfigFile::placeAt(std::size_t offset) const {
  return fmt::format(
      "{}:{}", name,
      1 + std::count(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

std::string ConfigFile::placeOf(const std::string &member, const std::string &after) const {
  const std::size_t start = after.empty() ? 0 : content.find("\"" + after + "\"");
  const std::size_t found = start == std::string::npos ? start : content.find("\"" + member + "\"", start);
  return found == std::string::npos ? name : placeAt(found);
}

void checkConfigFiles(const std::vector<std::string> &paths, const Machine &machine,
                      const VisibleDevices &visible, Diagnosis &diagnosis) {
  std::vector<ConfigFile> yaml, json;
  // A DeepSpeed configuration beside the others says that training is distributed.
  bool distributed = false;
  for (const std::string &path : paths) {
    ConfigFile file(path, readFile(path));
    const std::string kind = std::filesystem::path(path).extension();
    if (kind == ".yaml" || kind == ".yml") {
      yaml.push_back(std::move(file));
    } else if (file.parse(diagnosis)) {
      distributed = distributed || isDeepSpeedConfig(file.json());
      json.push_back(std::move(file));
    }
  }
  for (const ConfigFile &file : json) {
    if (isDeepSpeedConfig(file.json()))
      checkDeepSpeedConfig(file, machine, visible, diagnosis);
    checkDeviceMaps(file, machine, distributed, diagnosis);
  }
  for (const ConfigFile &file : yaml)
    checkYamlDeviceMaps(file, machine, distributed, diagnosis);
  diagnosis.setPlace("");
}

} // namespace devicerun::doctor
