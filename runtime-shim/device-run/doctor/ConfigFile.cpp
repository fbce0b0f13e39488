#include "doctor/ConfigFile.h"

#include "base/RunError.h"
#include "doctor/AccelerateConfig.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace devicerun::doctor {
namespace {

std::string readFile(const std::string &path) {
  std::error_code error;
  // Opening one without a writer waits forever; those of shells (<(...)) are open already.
  if (std::filesystem::is_fifo(path, error) && path.rfind("/dev/", 0) != 0 && path.rfind("/proc/", 0) != 0)
    throw RunError(ExitUsage,
                   fmt::format("cannot read the configuration file {}: it is a pipe; name a file", path));
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
  if (content.find_first_not_of(" \t\r\n") == std::string::npos) {
    diagnosis.setPlace(name);
    diagnosis.problem("config", "empty", "this file is empty",
                      "name the configuration of a training program");
    diagnosis.setPlace("");
    return false;
  }
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
          "config", "not-json", "this is not valid JSON",
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

namespace {

/// The configuration files of a job: those that were named, and those that they name.
class ConfigFiles {
public:
  ConfigFiles(const Machine &machine, const VisibleDevices &visible, Diagnosis &diagnosis)
      : machine(machine), visible(visible), diagnosis(diagnosis) {}

  void read(const std::string &path) {
    std::error_code error;
    if (!seen.insert(std::filesystem::weakly_canonical(path, error)).second)
      return;
    ConfigFile file(path, readFile(path));
    const std::string kind = std::filesystem::path(path).extension();
    if (kind == ".yaml" || kind == ".yml") {
      if (const std::optional<AccelerateConfig> config = readAccelerateYaml(file))
        readNamedBy(*config, path);
      yaml.push_back(std::move(file));
    } else if (file.parse(diagnosis)) {
      if (const std::optional<AccelerateConfig> config = readAccelerateJson(file))
        readNamedBy(*config, path);
      const nlohmann::json *zero = trainersDeepSpeed(file);
      distributed = distributed || zero || isDeepSpeedConfig(file.json());
      if (zero && zero->is_string())
        readReference(path, zero->get<std::string>(), file.placeOf("deepspeed"));
      json.push_back(std::move(file));
    }
  }

  void check() {
    for (const ConfigFile &file : json) {
      const std::size_t before = diagnosis.lines().size();
      if (isDeepSpeedConfig(file.json()))
        checkDeepSpeedConfig(file, file.json(), machine, visible, diagnosis);
      else if (const nlohmann::json *zero = trainersDeepSpeed(file))
        checkTrainers(file, *zero);
      if (const std::optional<AccelerateConfig> config = readAccelerateJson(file))
        checkAccelerateConfig(*config, diagnosis);
      checkDeviceMaps(file, machine, distributed, diagnosis);
      warnWithoutLines(file, before);
    }
    for (const ConfigFile &file : yaml) {
      const std::size_t before = diagnosis.lines().size();
      const std::optional<AccelerateConfig> config = readAccelerateYaml(file);
      if (config)
        checkAccelerateConfig(*config, diagnosis);
      checkYamlDeviceMaps(file, machine, distributed || (config && config->isDistributed()), diagnosis);
      warnWithoutLines(file, before);
    }
  }

private:
  /// Hugging Face's TrainingArguments have DeepSpeed's configuration, or the name of its file, under
  /// "deepspeed". Null without.
  static const nlohmann::json *trainersDeepSpeed(const ConfigFile &file) {
    const auto found = file.json().find("deepspeed");
    const bool given = found != file.json().end() &&
                       (found->is_object() || (found->is_string() && !found->get<std::string>().empty()));
    return given ? &*found : nullptr;
  }

  void checkTrainers(const ConfigFile &file, const nlohmann::json &zero) {
    if (zero.is_object()) {
      checkDeepSpeedConfig(file, zero, machine, visible, diagnosis);
      return;
    }
    diagnosis.setPlace(file.placeOf("deepspeed"));
    diagnosis.ok("deepspeed", "trainer-config",
                 fmt::format("DeepSpeed's configuration is to be {}", zero.get<std::string>()));
  }

  void readNamedBy(const AccelerateConfig &config, const std::string &path) {
    const AccelerateConfig::Setting *named = config.setting("deepspeed_config_file");
    if (named && !named->value.empty() && named->value != "none" && named->value != "null")
      readReference(path, named->value, named->place);
  }

  /// Programs look in the folder that they are started in; the user may be in another one.
  void readReference(const std::string &from, const std::string &named, const std::string &place) {
    std::error_code error;
    const std::filesystem::path beside = std::filesystem::path(from).parent_path() / named;
    if (std::filesystem::is_regular_file(named, error)) {
      read(named);
    } else if (std::filesystem::is_regular_file(beside, error)) {
      read(beside.string());
    } else {
      diagnosis.setPlace(place);
      diagnosis.problem(
          "config", "no-such-config",
          fmt::format("the configuration of DeepSpeed, {}, is neither here nor beside this file", named),
          "name a file that is there, by its whole path or as seen from where the job starts");
      diagnosis.setPlace("");
    }
  }

  /// Otherwise it would look like a file in which all is well.
  void warnWithoutLines(const ConfigFile &file, std::size_t before) {
    if (diagnosis.lines().size() > before)
      return;
    diagnosis.setPlace(file.path());
    diagnosis.warn("config", "nothing-known",
                   "this file has nothing that the doctor checks: no setting of DeepSpeed or accelerate, and "
                   "no device_map",
                   "name the file that has them; of YAML, lines such as 'key: value' are read");
  }

  const Machine &machine;
  const VisibleDevices &visible;
  Diagnosis &diagnosis;
  std::vector<ConfigFile> yaml, json;
  std::set<std::filesystem::path> seen;
  bool distributed = false; ///< a DeepSpeed configuration beside the others says so
};

} // namespace

void checkConfigFiles(const std::vector<std::string> &paths, const Machine &machine,
                      const VisibleDevices &visible, Diagnosis &diagnosis) {
  ConfigFiles files(machine, visible, diagnosis);
  for (const std::string &path : paths)
    files.read(path);
  files.check();
  diagnosis.setPlace("");
}

} // namespace devicerun::doctor
