//===- AddressLookup.h - source lines of machine code -----------*- C++ -*-===//
//
// Finds the source lines of addresses with addr2line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "records/Frame.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace devicerun {

/// Per address the function it lies in and those that were inlined around it, innermost first.
using AddressLines = std::map<std::uint64_t, std::vector<Frame>>;

/// Looks addresses of the ELF file `module` up in its debug information, with llvm-addr2line or addr2line of
/// binutils. Nothing when neither is installed.
std::optional<AddressLines> lookUpAddresses(const std::string &module,
                                            const std::vector<std::uint64_t> &addresses);

/// Reads what addr2line -a -f -i prints. Public for its tests.
AddressLines parseAddressLines(const std::string &output);

} // namespace devicerun
