#include "doctor/AccelerateConfig.h"

#include "base/Text.h"
#include "doctor/YamlLines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace devicerun::doctor {
namespace {

using nlohmann::json;
constexpr const char *kTopic = "deepspeed";

std::string valueOr(const AccelerateConfig &config, const char *name, const char *otherwise) {
  const AccelerateConfig::Setting *found = config.setting(name);
  return found && !found->value.empty() && found->value != "null" ? found->value : otherwise;
}

bool isTrue(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "true" || text == "yes" || text == "on" || text == "1";
}

void checkOffload(const AccelerateConfig &config, const std::string &part, const std::string &stage,
                  Diagnosis &diagnosis) {
  const std::string name = part + "_device", device = valueOr(config, name.c_str(), "none");
  if (device == "none")
    return;
  diagnosis.setPlace(config.setting(name)->place);
  if (device != "cpu" && device != "nvme") {
    diagnosis.problem(kTopic, "offload-device", fmt::format("{} is '{}'", name, device),
                      "accelerate knows none, cpu and nvme");
    return;
  }
  if (part == "offload_param" ? stage != "3" : stage == "0")
    diagnosis.problem(kTopic, part == "offload_param" ? "offload-param-stage" : "offload-optimizer-stage",
                      fmt::format("{} has no effect with zero_stage {}", name, stage),
                      part == "offload_param" ? "set zero_stage to 3, or remove it"
                                              : "set zero_stage to 2 or 3, or remove it");
  if (device != "nvme")
    return;
  const std::string path = valueOr(config, (part + "_nvme_path").c_str(), "none");
  std::error_code error;
  if (path == "none" || !std::filesystem::is_directory(path, error))
    diagnosis.problem(kTopic, "nvme-path",
                      path == "none"
                          ? fmt::format("{} is nvme without {}_nvme_path", name, part)
                          : fmt::format("{}_nvme_path is {}, which is not a folder here", part, path),
                      "name a folder on a local disk, on every machine of the job");
}

void checkZero(const AccelerateConfig &config, Diagnosis &diagnosis) {
  const std::string stage = valueOr(config, "zero_stage", "2");
  const std::optional<std::int64_t> number = parseInteger(stage);
  if (!number || *number < 0 || *number > 3) {
    diagnosis.setPlace(config.setting("zero_stage")->place);
    diagnosis.problem(kTopic, "zero-stage", fmt::format("there is no ZeRO stage {}", stage),
                      "2 shards gradients and optimizer state, 3 parameters too");
    return;
  }
  for (const char *part : {"offload_optimizer", "offload_param"})
    checkOffload(config, part, stage, diagnosis);
  if (*number != 3 || isTrue(valueOr(config, "zero3_save_16bit_model", "false")))
    return;
  const AccelerateConfig::Setting *save = config.setting("zero3_save_16bit_model");
  diagnosis.setPlace((save ? save : config.setting("zero_stage"))->place);
  diagnosis.warn(kTopic, "gather-on-save",
                 "zero_stage 3 without zero3_save_16bit_model: a saved model has no weights, only the "
                 "checkpoint's shards do",
                 "set it to true, or make the weights from the checkpoint with zero_to_fp32.py");
}

std::string describe(const AccelerateConfig &config) {
  std::string text = "accelerate's configuration";
  if (!config.type.value.empty())
    text += fmt::format(", distributed_type {}", config.type.value);
  if (config.setting("deepspeed_config_file"))
    return text + ", with a file for DeepSpeed";
  if (!config.deepSpeed.empty())
    text += fmt::format(
        ", ZeRO stage {}, optimizer offloaded to {}, parameters to {}", valueOr(config, "zero_stage", "2"),
        valueOr(config, "offload_optimizer_device", "none"), valueOr(config, "offload_param_device", "none"));
  return text;
}

} // namespace

const AccelerateConfig::Setting *AccelerateConfig::setting(const std::string &name) const {
  const auto found = deepSpeed.find(name);
  return found == deepSpeed.end() ? nullptr : &found->second;
}

std::optional<AccelerateConfig> readAccelerateYaml(const ConfigFile &file) {
  AccelerateConfig config;
  bool known = false;
  std::optional<std::size_t> section; // the indent of deepspeed_config, while its lines last
  const std::vector<std::string> lines = split(file.text(), '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::optional<YamlLine> line = readYamlLine(lines[i]);
    if (!line)
      continue;
    const AccelerateConfig::Setting setting{line->value, fmt::format("{}:{}", file.path(), i + 1)};
    if (section && line->indent > *section) {
      config.deepSpeed[line->key] = setting;
      continue;
    }
    section.reset();
    if (line->key == "deepspeed_config")
      section = line->indent;
    else if (line->key == "distributed_type")
      config.type = setting;
    known = known || section || line->key == "distributed_type";
  }
  return known ? std::optional(config) : std::nullopt;
}

std::optional<AccelerateConfig> readAccelerateJson(const ConfigFile &file) {
  AccelerateConfig config;
  const auto textOf = [](const json &value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  const auto type = file.json().find("distributed_type"), section = file.json().find("deepspeed_config");
  if (type == file.json().end() && section == file.json().end())
    return std::nullopt;
  if (type != file.json().end())
    config.type = {textOf(*type), file.placeOf("distributed_type")};
  if (section != file.json().end() && section->is_object())
    for (const auto &[name, value] : section->items())
      config.deepSpeed[name] = {textOf(value), file.placeOf(name, "deepspeed_config")};
  return config;
}

void checkAccelerateConfig(const AccelerateConfig &config, Diagnosis &diagnosis) {
  const std::size_t before = diagnosis.lines().size();
  if (!config.deepSpeed.empty() && !config.setting("deepspeed_config_file"))
    checkZero(config, diagnosis);
  if (diagnosis.lines().size() > before)
    return;
  diagnosis.setPlace(config.type.place.empty() && !config.deepSpeed.empty()
                         ? config.deepSpeed.begin()->second.place
                         : config.type.place);
  diagnosis.ok("accelerate", "accelerate-config", describe(config));
}

} // namespace devicerun::doctor
