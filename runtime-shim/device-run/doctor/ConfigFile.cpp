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
    root = nlohmann::json::parse(content);
    return true;
  } catch (const nlohmann::json::parse_error &error) {
    const std::size_t offset = std::min(content.size(), error.byte > 0 ? error.byte - 1 : 0);
    const std::size_t lineStart = offset == 0 ? 0 : content.rfind('\n', offset - 1) + 1;
    diagnosis.setPlace(fmt::format("{}:{}", placeAt(offset), offset - lineStart + 1));
    diagnosis.problem("config", "not-json", "this is no valid JSON",
                      "look for a missing or surplus comma, quotes or a comment there; JSON has no comments");
    diagnosis.setPlace("");
    return false;
  }
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
