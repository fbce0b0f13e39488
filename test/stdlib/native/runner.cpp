// Prints for each function and world: name, world, status, lines that failed, lines that went well.
#include "runner.h"
#include "at_label.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

void label::meet(int first, int second, int line, const char *file) {
  if (std::strcmp(file, generatedFile) != 0)
    line = statement;
  if (first < 0 || second < 0) {
    passed.erase(line); // what the next round would do there is not known
    throw UndefinedTensor();
  }
  if (first != second) {
    thrown.insert(line);
    throw DeviceError();
  }
  passed.insert(line);
}

static void print(const std::set<int> &lines) {
  std::putchar(' ');
  if (lines.empty())
    std::putchar('-');
  const char *comma = "";
  for (int line : lines) {
    std::printf("%s%d", comma, line);
    comma = ",";
  }
}

static void run(const runner::Function &function) {
  const char *status = "done";
  label::thrown.clear();
  label::passed.clear();
  runner::flags = 0;
  try {
    function.call();
  } catch (const label::DeviceError &) {
    status = "device";
  } catch (...) {
    status = "other";
  }
  std::printf("%s %d %s", function.name, runner::world, status);
  print(label::thrown);
  print(label::passed);
  std::putchar('\n');
  std::fflush(stdout);
}

// Runs the function in the worlds from `first` to `end` in a child.
static void start(const runner::Function &function, int first, int end) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(2);
    if (!std::freopen("/dev/null", "w", stderr))
      _exit(1);
    for (runner::world = first; runner::world < end; ++runner::world)
      run(function);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0)
    std::printf("%s %d crash - -\n", function.name, first);
}

int main() {
  for (const runner::Function *function = functions; function->name; ++function)
    if (function->apart)
      for (int world = 0; world < function->worlds; ++world)
        start(*function, world, world + 1);
    else
      start(*function, 0, function->worlds);
}
