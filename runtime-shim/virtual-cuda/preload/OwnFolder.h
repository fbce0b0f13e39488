//===- OwnFolder.h - where this library lies --------------------*- C++ -*-===//
//
// The folder that the parts which are loaded later are looked for in.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace vcuda {

/// The folder of libvirtual_cuda.so, with a slash at the end.
std::string ownFolder();

} // namespace vcuda
