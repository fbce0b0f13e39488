//===- DeepSpeedNames.h - the settings that DeepSpeed knows -----*- C++ -*-===//
#pragma once

#include <optional>
#include <string>

namespace devicerun::doctor {

/// For a name that is none of DeepSpeed's: the one it is written nearly like (deepspeed.ai/docs/config-json
/// and runtime/constants.py).
std::optional<std::string> nearestSetting(const std::string &name);

/// Whether zero_optimization may have the name (runtime/zero/config.py), and the one it is written nearly
/// like.
bool isZeroSetting(const std::string &name);
std::optional<std::string> nearestZeroSetting(const std::string &name);

} // namespace devicerun::doctor
