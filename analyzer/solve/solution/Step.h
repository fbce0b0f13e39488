//===- Step.h - the history of a tensor ---------------------------*- C++ -*-===//
//
// The steps that put a tensor where it is, as plain data, and how sure a finding about it can be.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"

#include <cstdint>
#include <string>

namespace devicetidy {

/// How sure a finding is. Definite: a feasible path on which two known devices differ. Likely: a device the
/// function does not choose itself (a device parameter or member, an entry of a device list) meets one that
/// it does. Latent: only a caller can tell.
enum class Level : std::uint8_t { Definite, Likely, Latent };

/// One step of the history that put a tensor where it is.
enum class StepKind : std::uint8_t {
  Created,     ///< made here by a factory, on `device`
  Moved,       ///< moved here to `device`
  Inherited,   ///< takes the device of `subject` (x.options(), *_like, result of an operation)
  ModuleMoved, ///< the module `subject` was moved to `device`
  ModuleMade,  ///< the module `subject` was made here, its parameters on `device`
  Loaded,      ///< loaded from a file or a dataset
  Parameter,   ///< `subject` is a parameter: its device is the caller's choice
  Member,      ///< read from the member `subject`, which Module::to does not move
  Chosen,      ///< `device` is chosen at run time here
  Passed,      ///< passed as argument `subject`
  Returned,    ///< returned from `subject`
  Stored,      ///< stored in `subject`
  Named,       ///< the program names `device` here
  Discarded,   ///< a move of `subject` is thrown away here: it stays on `device`
  LeftBehind,  ///< stays where it is while its object moves `subject` to `device` here
  Dispatched,  ///< `subject` is a parameter of a function that is registered for `device`
  Registered,  ///< registered with a module here; `device` is where that was moved before, if it was
};

/// Does such a step decide the device, rather than pass on what decided it?
constexpr bool decidesDevice(StepKind kind) {
  switch (kind) {
  case StepKind::Inherited:
  case StepKind::Passed:
  case StepKind::Returned:
  case StepKind::Stored:
  case StepKind::Member:
  case StepKind::LeftBehind:
  case StepKind::Registered:
    return false;
  default:
    return true;
  }
}

struct Step {
  StepKind kind = StepKind::Created;
  Location where;
  std::string subject;   ///< variable, member, function or module the step is about; may be empty
  std::string device;    ///< device after the step, as users write it: "cpu", "cuda:1", "cuda", "device" ...
  std::string from{};    ///< Moved: the device before; empty when it is not known
  std::string givenTo{}; ///< Moved: the call of an entry that was passed the tensor
  bool isByVariable = false; ///< the program had the device from a variable
  bool isPinned = false;     ///< page-locked memory of the host: GPUs reach it too
  bool isLent = false;       ///< memory of somebody else (from_blob), which may be page-locked
};

} // namespace devicetidy
