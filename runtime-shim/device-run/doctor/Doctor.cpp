#include "doctor/Doctor.h"

#include "base/RunError.h"
#include "base/Text.h"
#include "doctor/Checks.h"

#include <fmt/format.h>

#include <filesystem>

namespace devicerun::doctor {
namespace {

constexpr int kExitProblems = 1;

const char *const kHelp =
    "device-run doctor [options] [FILES...]\n\n"
    "Checks what distributed training needs: driver, CUDA, NCCL and LibTorch, the GPUs and their numbers,\n"
    "the variables of the launcher, and configuration files: DeepSpeed's JSON, accelerate's YAML, and\n"
    "JSON or YAML with a device_map. Prints a verdict per line, ok, warning or problem, and what to do.\n"
    "Run it as the ranks are run (srun device-run doctor) to see what they see.\n\n"
    "  --format text|json       how to print the report\n"
    "  --program PROGRAM        check the LibTorch that PROGRAM is linked with\n"
    "  --site-packages DIR      look for Python packages there first; may be repeated\n"
    "  --strict                 warnings count like problems\n"
    "  --help                   show this\n\n"
    "The exit code is 0 without problems, 1 with some, 2 for a wrong command line or a file that cannot be "
    "read.\n";

[[noreturn]] void usageError(const std::string &message) {
  throw RunError(ExitUsage, message + "; see device-run doctor --help");
}

void requireFile(const std::string &option, const std::string &path, bool folder) {
  std::error_code error;
  if (folder ? !std::filesystem::is_directory(path, error) : !std::filesystem::is_regular_file(path, error))
    usageError(fmt::format("{} {} is not a {}", option, path, folder ? "folder" : "file"));
}

void apply(DoctorOptions &options, const std::string &name, const std::string &value) {
  if (name == "--format") {
    if (value != "text" && value != "json")
      usageError(fmt::format("--format is text or json, not '{}'", value));
    options.json = value == "json";
  } else if (name == "--program") {
    requireFile(name, value, /*folder=*/false);
    options.program = value;
  } else {
    requireFile(name, value, /*folder=*/true);
    options.sitePackages.push_back(value);
  }
}

} // namespace

DoctorOptions parseDoctorOptions(const std::vector<std::string> &arguments) {
  static const std::vector<std::string> names = {"--format", "--program", "--site-packages", "--strict",
                                                 "--help"};
  DoctorOptions options;
  bool onlyFiles = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string &text = arguments[i];
    if (onlyFiles || text.size() < 2 || text[0] != '-') {
      options.files.push_back(text);
      continue;
    }
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (text == "--") {
      onlyFiles = true;
    } else if (name == "--strict" || name == "--help" || name == "-h") {
      if (equals != std::string::npos)
        usageError(fmt::format("{} takes no value", name));
      (name == "--strict" ? options.strict : options.help) = true;
    } else if (name == "--format" || name == "--program" || name == "--site-packages") {
      if (equals == std::string::npos && i + 1 == arguments.size())
        usageError(fmt::format("{} needs a value", name));
      apply(options, name, equals == std::string::npos ? arguments[++i] : text.substr(equals + 1));
    } else {
      std::optional<std::string> near = nearestTo(name, names);
      usageError(fmt::format("unknown option '{}'{}", name,
                             near ? fmt::format("; did you mean {}?", *near) : std::string()));
    }
  }
  return options;
}

int runDoctor(const std::vector<std::string> &arguments) {
  const DoctorOptions options = parseDoctorOptions(arguments);
  if (options.help) {
    fmt::print("{}", kHelp);
    return 0;
  }
  const Machine machine = inspect(options.program, options.sitePackages);
  const VisibleDevices visible = readVisibleDevices(machine);
  Diagnosis diagnosis;
  checkLibraries(machine, diagnosis);
  checkPython(machine, diagnosis);
  checkDevices(machine, visible, diagnosis);
  checkDistributed(machine, diagnosis);
  checkCommunication(machine, diagnosis);
  checkPackages(machine, diagnosis);
  checkConfigFiles(options.files, machine, visible, diagnosis);
  fmt::print("{}", options.json ? toJson(diagnosis) : toText(diagnosis));
  const bool bad =
      diagnosis.count(Verdict::Problem) > 0 || (options.strict && diagnosis.count(Verdict::Warning) > 0);
  return bad ? kExitProblems : 0;
}

} // namespace devicerun::doctor
