//===- Records.h - the record files of a process ----------------*- C++ -*-===//
//
// The record files of this process, and when they are written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RecordFile.h"

namespace vcuda {

/// Null when the launcher did not request them.
RecordFile *errorFile();
RecordFile *traceFile();
RecordFile *reachedFile();

/// To be called once, when the library is loaded.
void startRecords();

/// Microseconds of CLOCK_MONOTONIC, and this thread's number.
double nowInMicroseconds();
long long threadNumber();

} // namespace vcuda
