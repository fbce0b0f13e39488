#include "analyzer/config/Configuration.h"

#include "analyzer/config/CheckGlobs.h"
#include "analyzer/config/Pyproject.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <fmt/format.h>

namespace devicetidy::config {
namespace {

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// A section that holds, with its file.
struct Said {
  const ConfigFile *file;
  const ConfigSection *section;
};

std::string absolute(StringRef name) {
  llvm::SmallString<256> result(name);
  fs::make_absolute(result);
  path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

std::string absoluteFrom(StringRef directory, StringRef name) {
  llvm::SmallString<256> result(path::is_absolute(name) ? StringRef() : directory);
  path::append(result, name);
  path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

/// `file` seen from the folder of the configuration file.
StringRef below(StringRef file, StringRef directory) {
  if (file.consume_front(directory))
    file.consume_front("/");
  return file;
}

bool isToml(StringRef name) { return name.ends_with(".toml"); }

/// False without an error: a file of the TOML kind without a table for us.
bool readConfigFile(const std::string &name, ConfigFile &result, std::string &error) {
  auto text = llvm::MemoryBuffer::getFile(name, /*IsText=*/true);
  if (!text) {
    error = name + ": " + text.getError().message();
    return false;
  }
  result.name = name;
  result.directory = path::parent_path(name).str();
  if (!isToml(name))
    return parseConfig((*text)->getBuffer(), result, error);
  const auto table = tableOf((*text)->getBuffer(), name, error);
  return table && parseConfig(table->yaml, result, error, table->places);
}

Values defaults() {
  Values values;
  values.checks = {{"*", "default"}};
  values.level = {"likely", "default"};
  values.headerFilter = {".*", "default"};
  values.excludeHeaderFilter = {"", "default"};
  values.torchVersion = {"", "default"};
  return values;
}

/// Adds a list of globs. One that begins with a removal changes what came before, and so does one of a file
/// that inherits; any other list replaces the inherited one.
void addGlobs(std::vector<Sourced> &lists, Sourced added, bool replaces) {
  if (replaces && !StringRef(added.text).ltrim().starts_with("-"))
    lists.clear();
  lists.push_back(std::move(added));
}

class Merger {
public:
  Values values = defaults();

  void add(const Said &said) {
    const ConfigSection &section = *said.section;
    const auto sourced = [&said](const ConfigText &text) {
      return Sourced{text.text,
                     text.line ? fmt::format("{}:{}", said.file->name, text.line) : said.file->name};
    };
    const auto set = [&](const std::optional<ConfigText> &text, Sourced &value) {
      if (text)
        value = sourced(*text);
    };
    const auto append = [&](const std::vector<ConfigText> &texts, std::vector<Sourced> &list) {
      for (const ConfigText &text : texts)
        list.push_back(sourced(text));
    };
    for (const ConfigText &text : section.checks) {
      addGlobs(values.checks, sourced(text), !hasChecks);
      hasChecks = true;
    }
    append(section.warningsAsErrors, values.warningsAsErrors);
    set(section.level, values.level);
    set(section.headerFilter, values.headerFilter);
    set(section.excludeHeaderFilter, values.excludeHeaderFilter);
    set(section.torchVersion, values.torchVersion);
    for (const ConfigText &text : section.models) {
      values.models.push_back(sourced(text));
      values.models.back().text = absoluteFrom(said.file->directory, text.text);
    }
    append(section.extraArguments, values.extraArguments);
    append(section.extraArgumentsBefore, values.extraArgumentsBefore);
    append(section.removedArguments, values.removedArguments);
    for (const ConfigOption &option : section.checkOptions)
      values.checkOptions[option.name] = sourced(option.value);
  }

  void add(const CommandLine &line) {
    const auto set = [](const std::optional<std::string> &text, const char *option, Sourced &value) {
      if (text)
        value = fromOption(*text, option);
    };
    const auto append = [](const std::vector<std::string> &texts, const char *option,
                           std::vector<Sourced> &list) {
      for (const std::string &text : texts)
        list.push_back(fromOption(text, option));
    };
    if (line.checks)
      addGlobs(values.checks, fromOption(*line.checks, "--checks"), true);
    if (line.warningsAsErrors)
      addGlobs(values.warningsAsErrors, fromOption(*line.warningsAsErrors, "--warnings-as-errors"), true);
    set(line.level, "--level", values.level);
    if (line.level) // for single checks, too
      for (auto option = values.checkOptions.begin(); option != values.checkOptions.end();)
        option = StringRef(option->first).ends_with(".Level") ? values.checkOptions.erase(option)
                                                              : std::next(option);
    set(line.headerFilter, "--header-filter", values.headerFilter);
    set(line.excludeHeaderFilter, "--exclude-header-filter", values.excludeHeaderFilter);
    set(line.torchVersion, "--torch-version", values.torchVersion);
    for (const std::string &file : line.models)
      values.models.push_back(fromOption(absolute(file), "--models"));
    append(line.extraArguments, "--extra-arg", values.extraArguments);
    append(line.extraArgumentsBefore, "--extra-arg-before", values.extraArgumentsBefore);
    append(line.removedArguments, "--removed-arg", values.removedArguments);
  }

private:
  static Sourced fromOption(const std::string &text, const char *option) {
    return {text, fmt::format("command-line option '{}'", option)};
  }
  bool hasChecks = false; ///< a file had its say
};

} // namespace

bool Configuration::checkCommandLine(std::string &error) const {
  const auto checkGlobs = [&error](const std::optional<std::string> &globs, const char *option) {
    std::set<std::string> selected;
    if (!globs || selectChecks(*globs, selected, error))
      return true;
    error = std::string(option) + ": " + error;
    return false;
  };
  const auto checkRegex = [&error](const std::optional<std::string> &regex, const char *option) {
    if (regex)
      error = wrongRegex(*regex);
    if (error.empty())
      return true;
    error = std::string(option) + ": " + error;
    return false;
  };
  std::set<std::string> selected;
  if (!checkGlobs(commandLine.checks, "--checks"))
    return false;
  if (commandLine.checks && selectChecks(*commandLine.checks, selected, error) && selected.empty()) {
    error = "--checks=" + *commandLine.checks + " selects no check";
    return false;
  }
  return checkGlobs(commandLine.warningsAsErrors, "--warnings-as-errors") &&
         checkRegex(commandLine.headerFilter, "--header-filter") &&
         checkRegex(commandLine.excludeHeaderFilter, "--exclude-header-filter");
}

bool Configuration::open(std::string &error) {
  if (!checkCommandLine(error))
    return false;
  if (commandLine.config && commandLine.configFile) {
    error = "--config and --config-file both say what the configuration is; use only one of them";
    return false;
  }
  if (commandLine.configFile) {
    fixed.emplace();
    if (readConfigFile(absolute(*commandLine.configFile), *fixed, error))
      return true;
    if (!fs::exists(*commandLine.configFile))
      error = "--config-file: no such file: " + *commandLine.configFile;
    else if (error.empty())
      error = "--config-file: no [tool.device-tidy] in " + *commandLine.configFile;
    return false;
  }
  if (commandLine.config && !commandLine.config->empty()) {
    fixed.emplace();
    fixed->name = "<command-line-config>";
    fixed->directory = absolute(".");
    return parseConfig(*commandLine.config, *fixed, error);
  }
  return true;
}

bool Configuration::fileIn(StringRef directory, const ConfigFile *&file, std::string &error) {
  const auto [entry, isNew] = byDirectory.try_emplace(directory.str());
  if (isNew) {
    for (StringRef each : configFileNames) {
      llvm::SmallString<256> name(directory);
      path::append(name, each);
      if (!fs::exists(name))
        continue;
      auto read = std::make_unique<ConfigFile>();
      if (readConfigFile(name.str().str(), *read, error)) {
        entry->second = std::move(read);
        break;
      }
      if (!error.empty()) {
        byDirectory.erase(entry);
        return false;
      }
    }
  }
  file = entry->second.get();
  return true;
}

bool Configuration::filesFor(const std::string &source, std::vector<const ConfigFile *> &files,
                             std::string &error) {
  if (fixed) {
    files.push_back(&*fixed);
    return true;
  }
  for (StringRef directory = path::parent_path(source); !directory.empty();
       directory = path::parent_path(directory)) {
    const ConfigFile *file = nullptr;
    if (!fileIn(directory, file, error))
      return false;
    if (!file)
      continue;
    files.push_back(file);
    const StringRef path = below(source, file->directory);
    if (llvm::none_of(file->sections, [&](const ConfigSection &section) {
          return section.inheritParentConfig.value_or(false) && section.holdsFor(path);
        }))
      return true;
  }
  return true;
}

SettingsPointer Configuration::settingsFor(const std::string &source, std::string &error) {
  std::vector<const ConfigFile *> files;
  if (!filesFor(source, files, error))
    return nullptr;
  std::vector<Said> said;
  std::vector<const ConfigSection *> key;
  for (const ConfigFile *file : llvm::reverse(files))
    for (const ConfigSection &section : file->sections)
      if (section.holdsFor(below(source, file->directory))) {
        said.push_back({file, &section});
        key.push_back(&section);
      }
  SettingsPointer &settings = known[key];
  if (!settings) {
    Merger merger;
    for (const Said &each : said)
      merger.add(each);
    merger.add(commandLine);
    settings = std::make_shared<const Settings>(std::move(merger.values));
  }
  return settings;
}

} // namespace devicetidy::config
