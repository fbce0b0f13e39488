//===- Export.h - what the Python half links with ---------------*- C++ -*-===//
//
// Marks what the Python half of the virtual GPUs calls; all else is hidden.
//
//===----------------------------------------------------------------------===//
#pragma once

#define VCUDA_EXPORT __attribute__((visibility("default")))
