//===- Usage.h - facts about the program that need no solving ---*- C++ -*-===//
#pragma once

#include "analyzer/models/Distributed.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Types.h"
#include "analyzer/solve/engine/Backends.h"

#include <set>
#include <string>

namespace devicetidy {

/// Is `id` that of a constructor's companion, which no program calls itself?
inline bool isCompanion(Name id) { return id.view().find(delegationMark) != std::string_view::npos; }

/// A field of a class.
using Member = std::pair<Name, Name>;

/// What a scan over all facts tells.
struct Usage {
  bool setsDevice = false;      ///< set_device calls occur
  bool hasMain = false;         ///< else somebody outside passes what the program works on
  bool tellsGpusApart = false;  ///< some code chooses one of several GPUs, or guards the current one
  bool movesModules = false;    ///< a module is moved
  Backends backends;            ///< of process groups, which the program names
  std::set<Name> asksForDevice; ///< functions that ask a tensor for its device, or name a device
  std::set<Name> makesThere;    ///< functions that make a tensor where another one is, by its own method
  std::set<Name> takesDevice;   ///< functions of Python that are given a device
  std::set<Name> bringsToHost;  ///< functions that bring something to the host
  std::set<Name> movesOwn;      ///< methods of Python that move a module of their object
  /// Functions of Python that move a parameter to where another one is: by file and by the name of the
  /// parameter.
  std::map<std::pair<Name, Name>, std::set<Name>> movesParameter;
  /// Methods that move their objects, and the members that each of them moves by name.
  std::map<const Function *, std::set<Name>> movers;
  std::set<Name> leavesAutograd;       ///< functions that take what a model has computed out of autograd
  std::set<std::string> deviceFolders; ///< folders that hold such functions
  std::set<Name> exported;             ///< functions that are handed to a library for others to call
  std::set<Name> called;            ///< others that some fact calls, constructs with, or makes a closure of
  std::set<Name> calledBySiblings;  ///< methods of Python that methods of their class call on their object
  std::set<Name> calledWhileMaking; ///< methods of Python that constructors call, and nothing else
  std::set<Name>
      devicesMatter; ///< functions that handle tensors, modules or devices, themselves or by what they call
  std::set<Name> underGuard;       ///< functions that may be called while a device guard of a caller is alive
  std::set<Name> kernels;          ///< functions that are registered with the dispatcher, which calls them
  std::set<Name> writtenFields;    ///< fields that something besides a constructor assigns or moves
  std::set<Member> writtenOutside; ///< fields that functions of other classes, or of none, assign or move
  std::set<Name> setsAny;          ///< classes of Python that set fields by names that are not known
  std::set<Name> staticFlags;      ///< flags of static locals (initialisedSuffix)
  std::set<Name> writtenGlobals;   ///< globals and statics that something besides their initialiser changes
};
/// Is `function` the backward() of an autograd::Function? A thread of autograd runs it, which makes the GPU
/// of what it is given current (torch/csrc/autograd/engine.cpp).
bool isBackward(const Types &types, const Function &function);
/// The folder that `function` is written in.
std::string folderOf(const Function &function);

/// May something besides a constructor set `field` of objects of `type`?
bool isWrittenLater(const Program &program, const Usage &usage, Name type, Name field);

Usage scanUsage(const Program &program, const Types &types, const DistributedNames &names = {});

} // namespace devicetidy
