//===- VisibleDevices.h - the meaning of CUDA_VISIBLE_DEVICES ---*- C++ -*-===//
//
// Computes which GPUs a program sees, as CUDA does.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "doctor/Machine.h"

#include <optional>
#include <string>
#include <vector>

namespace devicerun::doctor {

/// How CUDA reads CUDA_VISIBLE_DEVICES ("CUDA C++ Programming Guide", CUDA Environment Variables): the
/// entries are renumbered from 0, a wrong one ends the list, a repeated one empties it, numbers may be
/// followed by anything as with strtoul, and UUIDs may be shortened as long as they are unambiguous.
/// torch/cuda/__init__.py, _parse_visible_devices(), reads it the same way.
struct VisibleDevices {
  bool limited = false;             ///< the variable is set
  std::optional<int> count;         ///< devices a program sees; nothing when the number of GPUs is not known
  std::vector<int> gpus;            ///< driver's index of cuda:0, cuda:1...; -1 where it is not known
  std::vector<std::string> entries; ///< as they were written
  bool hidden = false; ///< the list is one of the usual ways to show no GPU: "", "-1", "NoDevFiles"
  std::optional<std::string> wrong; ///< the entry that ends the list, nothing when all count
  std::string why;                  ///< what is wrong with it
  std::string repeated;             ///< an entry that is listed twice
  bool ignoredAfter = false;        ///< entries after the wrong one are lost
};

/// `gpus`: those of the driver; without a driver entries are taken to exist.
VisibleDevices readVisibleDevices(const Machine &machine);

} // namespace devicerun::doctor
