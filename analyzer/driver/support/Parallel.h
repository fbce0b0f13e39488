//===- Parallel.h - threads that survive crashes ----------------*- C++ -*-===//
//
// Runs work in threads with deep stacks. A crash in one piece of work does not end the process.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <functional>

namespace devicetidy::driver {

/// What threads are for; a profile shows them by this name.
enum class Task { LookUpInCache, Parse, LoadFacts, Solve };

/// Calls `work` with every number below `count`, in at most `jobs` threads. The threads
/// have stacks that deeply nested code does not exhaust.
void inParallel(Task task, std::size_t count, unsigned jobs, const std::function<void(std::size_t)> &work);

/// Runs `work`, in a thread with a deep stack when this one is not. False when it crashed.
bool runGuarded(const std::function<void()> &work);

} // namespace devicetidy::driver
