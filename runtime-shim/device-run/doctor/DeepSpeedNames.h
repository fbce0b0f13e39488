//===- DeepSpeedNames.h - the settings of DeepSpeed -------------*- C++ -*-===//
//
// The names of DeepSpeed's settings, to find misspelt ones.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>

namespace devicerun::doctor {

/// For an unknown name of DeepSpeed: the most similar known one (deepspeed.ai/docs/config-json
/// and runtime/constants.py).
std::optional<std::string> nearestSetting(const std::string &name);

/// Whether zero_optimization may have the name (runtime/zero/config.py), and the one it is written nearly
/// like.
bool isZeroSetting(const std::string &name);
std::optional<std::string> nearestZeroSetting(const std::string &name);

} // namespace devicerun::doctor
