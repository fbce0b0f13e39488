//===- ModelBodies.h - runs model bodies in place of library calls -*- C++ -*-===//
//
// A library function that has a model body (analyzer/models/bodies) is run like a function of the program.
// Its frame is a model frame: what happens in it happens, for the user, at the call that was written
// (Frame::site), and what it asks the interpreter to do goes to the primitives.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The kind of value that extract() gives.
inline const Name nodeType("dt::node");

/// Bodies of one library function.
using Bodies = std::vector<const Function *>;

/// Runs the one of `bodies` that is for `args` in place of `call`; nothing when there is none.
std::optional<Outcomes> runBody(Call &call, const Bodies &bodies, const std::vector<Argument> &args);
/// The object of `type` that the one of `bodies` for `args` constructs at `where`; nothing when there is
/// none.
std::optional<Outcomes> constructByBody(Call &call, const Bodies &bodies, Name type, const Address &where,
                                        const std::vector<Argument> &args);

/// The place in the program where what a model frame does is seen: the user's frame and call, for a call of
/// `callee` (may be empty) that gives no address.
struct Site {
  explicit Site(Call &call, Name callee = {});
  Frame frame;
  Fact fact;
  Call call;
};

} // namespace devicetidy
