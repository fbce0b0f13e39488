// Tests with several ranks: the test program starts itself once per rank, and each runs a worker function.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ranks {

/// A function that a rank runs; what it throws makes the process exit with 1.
struct Worker {
  Worker(const char *name, std::function<void()> body);
};

/// Runs the worker that the command line names, as a rank does; -1: the command line names none.
int runWorker(int argc, char **argv);

struct Launch {
  std::string worker;
  int count = 1;
  int virtualGpus = -1; ///< -1: without the library of virtual GPUs
  std::map<std::string, std::string> environment = {};
  double seconds = 120; ///< then all are killed
  int firstRank = 0;    ///< to start a part of a job
  int worldSize = 0;    ///< 0: count
  int port = 0;         ///< 0: a free one
  int survivors = 0;    ///< the last so many are killed when the others ended
};

struct Ended {
  int exitCode = -1; ///< 128 + signal for a process that a signal ended
  std::string output;
  double seconds = 0; ///< from the start of the launch
  double at = 0;      ///< now() when it ended
};

std::vector<Ended> run(const Launch &launch);
/// As run(), and fails the test with the outputs when a rank did not exit with 0.
std::vector<Ended> runAll(const Launch &launch);

/// Seconds of a clock that is the same in all processes.
double now();

int freePort();
/// Whether virtual GPUs can be preloaded here.
bool haveVirtualGpus();
/// A new directory, removed when this process ends.
std::string temporaryDirectory();

} // namespace ranks

#define RANK_WORKER(name)                                                                                    \
  static void name##_worker();                                                                               \
  static const ranks::Worker name##_registered(#name, name##_worker);                                        \
  static void name##_worker()

/// In workers: throws when the condition does not hold.
#define MUST(condition)                                                                                      \
  do {                                                                                                       \
    if (!(condition))                                                                                        \
      throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #condition);    \
  } while (false)

#define MUST_THROW(statement, type, part)                                                                    \
  do {                                                                                                       \
    std::string thrown;                                                                                      \
    try {                                                                                                    \
      statement;                                                                                             \
    } catch (const type &error) {                                                                            \
      thrown = error.what();                                                                                 \
    }                                                                                                        \
    if (thrown.find(part) == std::string::npos)                                                              \
      throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": '" + thrown +     \
                               "' instead of '" + (part) + "'");                                             \
  } while (false)
