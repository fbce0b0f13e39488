//===- BalancedSplit.h - splits a sequence by weight ------------*- C++ -*-===//
//
// Cutting a sequence into consecutive parts of about equal weight.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

namespace device_shim::detail {

/// The part of each element, such that the heaviest part is as light as possible and part i weighs at most
/// limits[i]. Earlier parts are filled first among equals. Empty when no cut keeps to the limits.
std::vector<size_t> balancedSplit(const std::vector<int64_t> &weights, const std::vector<int64_t> &limits);

} // namespace device_shim::detail
