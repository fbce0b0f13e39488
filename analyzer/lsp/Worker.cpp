#include "analyzer/lsp/Worker.h"

#include "analyzer/driver/support/Parallel.h"

#include <algorithm>

namespace devicetidy::lsp {
namespace {

constexpr std::chrono::milliseconds TypingPause{40};
constexpr std::chrono::milliseconds Patience{300}; ///< how long a user types without seeing results
constexpr std::chrono::seconds DiskInterval{2};

} // namespace

Worker::Worker(const driver::Options &options, std::function<void(Workspace::Result, std::uint64_t)> publish,
               std::function<void(bool)> making)
    : workspace(options, std::move(making)), publish(std::move(publish)), thread([this] {
        // For its deep stack.
        driver::inParallel(driver::Task::Solve, 1, 1, [this](std::size_t) { loop(); });
        const std::lock_guard<std::mutex> lock(mutex);
        hasEnded = true;
        ended.notify_all();
      }) {}

Worker::~Worker() {
  if (thread.joinable()) {
    end(std::chrono::milliseconds(0));
    thread.join();
  }
}

bool Worker::end(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex);
  isEnding = true;
  stop = true;
  wake.notify_all();
  return ended.wait_for(lock, patience, [this] { return hasEnded; });
}

std::uint64_t Worker::analyse(DocumentMap documents, Settings settings, When when, bool onDisk) {
  const std::lock_guard<std::mutex> lock(mutex);
  job.documents = std::move(documents);
  job.settings = std::move(settings);
  job.onDisk |= onDisk;
  const Clock::time_point now = Clock::now();
  if (!hasWork)
    jobSince = now;
  if (!behindSince)
    behindSince = now;
  // A change that follows another at once is one of several; a single one waits for nothing.
  const bool mayFollow = when == When::AfterTyping && now < lastChange + TypingPause;
  if (!hasWork || when == When::AfterTyping)
    due = mayFollow ? std::min(now + TypingPause, std::max(now, *behindSince + Patience)) : now;
  lastChange = now;
  hasWork = true;
  if (when == When::Now || now < *behindSince + Patience)
    stop = true;
  wake.notify_all();
  return ++job.number;
}

/// When idle: did another program change an open file or its compile database?
void Worker::lookAtDisk(std::unique_lock<std::mutex> &lock) {
  const DocumentMap documents = job.documents;
  if (documents.empty())
    return;
  lock.unlock();
  const bool isChanged = workspace.isChangedOnDisk(documents);
  lock.lock();
  if (!isChanged || hasWork)
    return;
  hasWork = job.onDisk = true;
  due = jobSince = Clock::now();
}

void Worker::loop() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!isEnding) {
    if (!hasWork) {
      wake.wait_for(lock, DiskInterval, [this] { return hasWork || isEnding; });
      if (!hasWork && !isEnding)
        lookAtDisk(lock);
      continue;
    }
    if (Clock::now() < due) {
      wake.wait_until(lock, due);
      continue;
    }
    const Job now = job;
    job.onDisk = hasWork = false;
    stop = false;
    lock.unlock();
    if (now.onDisk)
      workspace.refresh();
    Workspace::Result result = workspace.analyse(now.documents, now.settings, stop);
    const bool isPublished = !result.isStopped;
    if (isPublished)
      publish(std::move(result), now.number);
    lock.lock();
    if (isPublished)
      behindSince = hasWork ? std::optional(jobSince) : std::nullopt;
  }
}

} // namespace devicetidy::lsp
