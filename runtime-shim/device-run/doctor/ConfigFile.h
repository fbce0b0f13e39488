//===- ConfigFile.h - configuration files of training programs --*- C++ -*-===//
//
// Reads a configuration file as JSON and remembers the lines of its members, for messages.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "doctor/Checks.h"
#include "doctor/JsonText.h"

#include <string>

namespace devicerun::doctor {

/// A JSON file and the lines its members are on.
class ConfigFile {
public:
  ConfigFile(std::string path, std::string text);

  const std::string &path() const { return name; }
  const std::string &text() const { return content; }

  /// Parses the file as JSON; a line, and false, when it is not an object. DeepSpeed reads more than JSON,
  /// and its configurations may have comments and surplus commas.
  bool parse(Diagnosis &diagnosis);
  const nlohmann::json &json() const { return parsed.root; }
  /// A name that an object has twice; empty: none has.
  const std::string &repeatedName() const { return parsed.repeated; }

  /// "FILE:LINE" of the first member with this name, from the first member named `after` on; "FILE" when
  /// there is none.
  std::string placeOf(const std::string &member, const std::string &after = "") const;
  /// "FILE:LINE" of an offset in the text.
  std::string placeAt(std::size_t offset) const;

private:
  bool parseAsDeepSpeed();
  bool usable(Diagnosis &diagnosis) const;

  std::string name, content;
  JsonText parsed;
};

/// Whether this is a configuration of DeepSpeed.
bool isDeepSpeedConfig(const nlohmann::json &root);

/// ZeRO's offloading, saving, number formats and batch sizes (deepspeed.ai/docs/config-json, and
/// runtime/config.py and runtime/zero/config.py of DeepSpeed).
/// \param config the file's object, or the one within it.
void checkDeepSpeedConfig(const ConfigFile &file, const nlohmann::json &config, const Machine &machine,
                          const VisibleDevices &visible, Diagnosis &diagnosis);

/// Members named device_map at any depth, which distributed training excludes (accelerate/accelerator.py,
/// prepare_model(): more than one entry). `distributed`: a configuration says that training is distributed.
void checkDeviceMaps(const ConfigFile &file, const Machine &machine, bool distributed, Diagnosis &diagnosis);

/// The same for the lines of a YAML file, which is not parsed: keys are taken as they stand.
void checkYamlDeviceMaps(const ConfigFile &file, const Machine &machine, bool distributed,
                         Diagnosis &diagnosis);

} // namespace devicerun::doctor
