#include "launch/Program.h"

#include "base/RunError.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace devicerun {
namespace {

namespace fs = std::filesystem;

std::string nearbyName(const fs::path &wanted) {
  std::vector<std::string> names;
  std::error_code error;
  fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  fs::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename());
  std::optional<std::string> near = nearestTo(wanted.filename().string(), names);
  return near ? fmt::format("; there is {}", (wanted.parent_path() / *near).string()) : "";
}

std::string howToRun(const std::string &name) {
  fs::path extension = fs::path(name).extension();
  if (extension == ".py")
    return fmt::format("run it with its interpreter: device-run -- python3 {}", name);
  if (extension == ".cpp" || extension == ".cc" || extension == ".cu")
    return "it is a source file; compile it and give the program";
  return fmt::format("chmod +x {}", name);
}

void checkExecutable(const std::string &name) {
  std::error_code error;
  fs::file_status status = fs::status(name, error);
  if (error && error.value() != ENOENT && error.value() != ENOTDIR)
    throw RunError(ExitNotExecutable, fmt::format("cannot run {}: {}", name, error.message()));
  if (!fs::exists(status))
    throw RunError(ExitNotFound, fmt::format("cannot run {}: no such file{}", name, nearbyName(name)));
  if (fs::is_directory(status))
    throw RunError(ExitNotExecutable,
                   fmt::format("cannot run {}: it is a directory; name the program in it", name));
  if (access(name.c_str(), X_OK) != 0)
    throw RunError(ExitNotExecutable,
                   fmt::format("cannot run {}: {}; {}", name, std::strerror(errno), howToRun(name)));
}

} // namespace

std::string findProgram(const std::string &name, const std::string &path) {
  if (name.find('/') != std::string::npos) {
    checkExecutable(name);
    return name;
  }
  for (const std::string &folder : split(path, ':')) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    std::error_code error;
    if (fs::is_regular_file(candidate, error) && access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  std::error_code error;
  bool here = fs::exists(name, error);
  throw RunError(ExitNotFound,
                 fmt::format("cannot run {}: no such program in PATH{}", name,
                             here ? fmt::format("; for the file in this directory write ./{}", name) : ""));
}

} // namespace devicerun
