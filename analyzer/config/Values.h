//===- Values.h - what the values of options may be -------------*- C++ -*-===//
//
// The command line and configuration files take the same values and say the same about wrong ones.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/CheckInfo.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace devicetidy::config {

/// "'x' is not one of a, b"; what was meant, when one is near.
std::string notOneOf(llvm::StringRef value, const std::vector<std::string> &known);

/// "definite", "likely" or "latent"; nothing, with a sentence in `error`, for other text.
std::optional<Level> parseLevel(llvm::StringRef text, std::string &error);

struct TorchVersion {
  int major = 0, minor = 0; ///< both 0: the one the code includes
};
std::optional<TorchVersion> parseTorchVersion(llvm::StringRef text, std::string &error);

/// An error message for an invalid regular expression, or empty. An empty expression matches nothing.
std::string wrongRegex(llvm::StringRef text);

/// An entry of CheckOptions.
struct CheckOptionName {
  const CheckInfo *check = nullptr;
  const CheckOption *option = nullptr;
};
/// The option "check.Option"; nothing, with a sentence that names the nearest in `error`, when there
/// is none.
std::optional<CheckOptionName> findCheckOption(llvm::StringRef name, std::string &error);
/// A sentence about a value that `option` cannot have, or empty.
std::string wrongOptionValue(const CheckOption &option, llvm::StringRef value);

/// The items of a list such as "ns::load;ns::open".
std::vector<std::string> splitNames(llvm::StringRef text);

} // namespace devicetidy::config
