#include "analyzer/config/DumpConfig.h"

#include "checks/CheckRegistry.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/YAMLTraits.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

namespace devicetidy::config {
namespace {

using Texts = std::vector<std::string>;

/// The settings as the YAML writer takes them.
struct Dump {
  std::string checks, warningsAsErrors, level, headerFilter, excludeHeaderFilter, torchVersion;
  Texts models, extraArguments, extraArgumentsBefore, removedArguments;
  std::map<std::string, std::string> options;
};

Texts textsOf(const std::vector<Sourced> &values) {
  Texts texts;
  for (const Sourced &value : values)
    texts.push_back(value.text);
  return texts;
}

} // namespace
} // namespace devicetidy::config

namespace llvm::yaml {

template <> struct CustomMappingTraits<std::map<std::string, std::string>> {
  static void inputOne(IO &io, StringRef key, std::map<std::string, std::string> &map) {
    io.mapRequired(key.str().c_str(), map[key.str()]);
  }
  static void output(IO &io, std::map<std::string, std::string> &map) {
    for (auto &[key, value] : map)
      io.mapRequired(key.c_str(), value);
  }
};

template <> struct MappingTraits<devicetidy::config::Dump> {
  static void mapping(IO &io, devicetidy::config::Dump &dump) {
    io.mapRequired("Checks", dump.checks);
    io.mapRequired("WarningsAsErrors", dump.warningsAsErrors);
    io.mapRequired("Level", dump.level);
    io.mapRequired("HeaderFilterRegex", dump.headerFilter);
    io.mapRequired("ExcludeHeaderFilterRegex", dump.excludeHeaderFilter);
    io.mapOptional("Models", dump.models);
    io.mapOptional("ExtraArgs", dump.extraArguments);
    io.mapOptional("ExtraArgsBefore", dump.extraArgumentsBefore);
    io.mapOptional("RemovedArgs", dump.removedArguments);
    io.mapOptional("TorchVersion", dump.torchVersion, std::string());
    io.mapRequired("CheckOptions", dump.options);
  }
};

} // namespace llvm::yaml

namespace devicetidy::config {

std::string dumpConfig(const Settings &settings) {
  const Values &values = settings.values();
  Dump dump;
  dump.checks = llvm::join(textsOf(values.checks), ",");
  dump.warningsAsErrors = llvm::join(textsOf(values.warningsAsErrors), ",");
  dump.level = values.level.text;
  dump.headerFilter = values.headerFilter.text;
  dump.excludeHeaderFilter = values.excludeHeaderFilter.text;
  dump.torchVersion = values.torchVersion.text;
  dump.models = textsOf(values.models);
  dump.extraArguments = textsOf(values.extraArguments);
  dump.extraArgumentsBefore = textsOf(values.extraArgumentsBefore);
  dump.removedArguments = textsOf(values.removedArguments);
  for (const CheckInfo &info : checkInfos())
    for (const CheckOption &option : info.options)
      if (settings.isEnabled(std::string(info.name)))
        dump.options[fmt::format("{}.{}", info.name, option.name)] =
            settings.option(llvm::StringRef(info.name), llvm::StringRef(option.name));
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::yaml::Output output(stream, nullptr, /*WrapColumn=*/0);
  output << dump;
  return text;
}

std::string explainConfig(const Settings &settings) {
  std::string text;
  const auto by = [](const std::string &origin) {
    return origin == "default" ? std::string("by default") : "in the " + origin;
  };
  for (const CheckInfo &info : checkInfos()) {
    const std::string check(info.name);
    text += fmt::format("'{}' is {} {}.\n", check, settings.isEnabled(check) ? "enabled" : "disabled",
                        by(settings.originOf(check)));
  }
  const auto tell = [&](const std::string &key, const Sourced &value) {
    text += fmt::format("{} is '{}' {}.\n", key, value.text, by(value.origin));
  };
  const auto tellIfSet = [&](const std::string &key, const Sourced &value) {
    if (value.origin != "default")
      tell(key, value);
  };
  const auto tellAll = [&](const std::string &key, const std::vector<Sourced> &list) {
    for (const Sourced &value : list)
      text += fmt::format("{} has '{}' {}.\n", key, value.text, by(value.origin));
  };
  const Values &values = settings.values();
  tell("Level", values.level);
  tellAll("WarningsAsErrors", values.warningsAsErrors);
  tellIfSet("HeaderFilterRegex", values.headerFilter);
  tellIfSet("ExcludeHeaderFilterRegex", values.excludeHeaderFilter);
  tellAll("Models", values.models);
  tellAll("ExtraArgs", values.extraArguments);
  tellAll("ExtraArgsBefore", values.extraArgumentsBefore);
  tellAll("RemovedArgs", values.removedArguments);
  tellIfSet("TorchVersion", values.torchVersion);
  for (const auto &[name, value] : values.checkOptions)
    tell(name, value);
  return text;
}

} // namespace devicetidy::config
