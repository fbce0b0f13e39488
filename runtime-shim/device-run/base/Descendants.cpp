#include "base/Descendants.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace devicerun {
namespace {

std::multimap<pid_t, pid_t> childrenByParent() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename();
    char *rest = nullptr;
    auto pid = static_cast<pid_t>(std::strtol(name.c_str(), &rest, 10));
    if (pid <= 0 || *rest)
      continue;
    if (pid_t parent = livingParent(entry->path() / "stat"))
      children.emplace(parent, pid);
  }
  return children;
}

} // namespace

void becomeSubreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

pid_t livingParent(const std::string &statFile) {
  std::ifstream file(statFile);
  // Reading fails when the process ends in between; getline() keeps that error, a bare iterator throws it.
  std::string text;
  std::getline(file, text, '\0');
  // "pid (name) state parent ...", where the name may hold anything, parentheses too.
  std::size_t end = text.rfind(')');
  if (end == std::string::npos || end + 4 >= text.size())
    return 0;
  char state = text[end + 2];
  if (state == 'Z' || state == 'X')
    return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + end + 4, nullptr, 10));
}

std::vector<pid_t> descendantsOf(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children = childrenByParent();
  std::vector<pid_t> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return found;
}

bool killDescendants(int milliseconds) {
  constexpr int step = 10;
  for (int waited = 0;; waited += step) {
    for (pid_t pid : descendantsOf(getpid()))
      kill(pid, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0)
      continue;
    if (descendantsOf(getpid()).empty())
      return true;
    if (waited >= milliseconds)
      return false;
    usleep(step * 1000);
  }
}

} // namespace devicerun
