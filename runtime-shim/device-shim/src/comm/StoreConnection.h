//===- StoreConnection.h - opens the store of a job -------------*- C++ -*-===//
//
// Opening the store of a job, and counting ranks at it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"
#include "comm/EndpointProbe.h"

#include <chrono>
#include <functional>
#include <string>

namespace device_shim::detail {

/// "4.0 s"
std::string secondsText(std::chrono::milliseconds time);

/// Connects to the store; with `server` this process listens, too.
/// \throws InitError
c10::intrusive_ptr<c10d::Store> openStore(const Endpoint &endpoint, bool server, int rank,
                                          std::chrono::milliseconds timeout);

/// A store, and the number it gave as its first answer.
struct FirstAnswer {
  c10::intrusive_ptr<c10d::Store> store;
  int64_t count = 0;
};

/// As openStore(), and counts up `key`. Requests to a store have no time limit of their own, so one that
/// accepts connections and never answers is found out here.
/// \throws InitError
FirstAnswer openAndCount(const Endpoint &endpoint, bool server, int rank, std::chrono::milliseconds timeout,
                         const std::string &key);

/// Waits until `key` was counted up to `size`; false when `giveUp` says so, or after `timeout`.
bool waitForCount(c10d::Store &store, const std::string &key, int size, std::chrono::milliseconds timeout,
                  const std::function<bool()> &giveUp);

} // namespace device_shim::detail
