#include "Records.h"

#include "Settings.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <initializer_list>
#include <thread>

namespace vcuda {
namespace {

RecordFile *makeFile(const char *directory, const char *kind) {
  // Leaked: operators run while static objects are torn down.
  return directory ? new RecordFile(directory, kind) : nullptr;
}

template <typename Use> void forEachFile(Use use) {
  for (RecordFile *file : {errorDirectory() ? errorFile() : nullptr, traceFile(), reachedFile()})
    if (file)
      use(*file);
}

// The launcher ends ranks with SIGTERM, which runs no exit handlers: what waits must not wait for long.
void startFlushing() {
  if (!traceFile())
    return;
  std::thread([] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      traceFile()->flush();
    }
  }).detach();
}

void beforeFork() {
  forEachFile([](RecordFile &file) { file.beforeFork(); });
}

void afterForkInParent() {
  forEachFile([](RecordFile &file) { file.afterForkInParent(); });
}

void afterForkInChild() {
  forEachFile([](RecordFile &file) { file.afterForkInChild(); });
  startFlushing();
}

} // namespace

RecordFile *errorFile() {
  // An error must not go unseen because only findings were asked for.
  static RecordFile *const file = errorDirectory() ? makeFile(errorDirectory(), "errors") : reachedFile();
  return file;
}

RecordFile *traceFile() {
  static RecordFile *const file = makeFile(traceDirectory(), "trace");
  return file;
}

RecordFile *reachedFile() {
  static RecordFile *const file = makeFile(reachedDirectory(), "reached");
  return file;
}

void startRecords() {
  if (!errorFile() && !traceFile() && !reachedFile())
    return;
  pthread_atfork(&beforeFork, &afterForkInParent, &afterForkInChild);
  startFlushing();
}

double nowInMicroseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

long long threadNumber() {
  thread_local const long long number = syscall(SYS_gettid);
  return number;
}

} // namespace vcuda
