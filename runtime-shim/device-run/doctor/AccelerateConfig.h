//===- AccelerateConfig.h - the file of `accelerate config` -----*- C++ -*-===//
//
// Reads the settings of accelerate that the doctor checks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "doctor/ConfigFile.h"

#include <map>
#include <optional>
#include <string>

namespace devicerun::doctor {

/// The part of accelerate's configuration that says how training is distributed. Its deepspeed_config has
/// names of its own (accelerate/utils/dataclasses.py, DeepSpeedPlugin).
struct AccelerateConfig {
  struct Setting {
    std::string value;
    std::string place; ///< "FILE:LINE"
  };
  Setting type;                             ///< distributed_type: "NO", "MULTI_GPU", "DEEPSPEED", "FSDP"...
  std::map<std::string, Setting> deepSpeed; ///< what deepspeed_config has

  bool isDistributed() const { return !deepSpeed.empty() || (!type.value.empty() && type.value != "NO"); }
  /// Null where deepspeed_config has no such name.
  const Setting *setting(const std::string &name) const;
};

/// Nothing for a file that has neither distributed_type nor deepspeed_config.
std::optional<AccelerateConfig> readAccelerateYaml(const ConfigFile &file);
std::optional<AccelerateConfig> readAccelerateJson(const ConfigFile &file);

/// ZeRO's stage, offloading and saving, by accelerate's names. Where deepspeed_config_file names a file, that
/// says it all.
void checkAccelerateConfig(const AccelerateConfig &config, Diagnosis &diagnosis);

} // namespace devicerun::doctor
