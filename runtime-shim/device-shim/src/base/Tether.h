//===- Tether.h - references that can be cut --------------------*- C++ -*-===//
//
// How what others keep reaches an object that may end before them, such as the hooks in a graph of autograd.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace device_shim::detail {

/// The object holds one and cuts it first in its destructor; others hold copies.
template <typename T> class Tether {
public:
  explicit Tether(T &object) : end(std::make_shared<End>()) { end->object = &object; }

  /// Returns when the object is not in use; from then on it cannot be reached.
  void cut() {
    std::lock_guard<std::recursive_mutex> lock(end->mutex);
    end->object = nullptr;
  }

  /// Calls `use` with the object. Returns whether it is still there.
  template <typename Use> bool reach(Use &&use) const {
    std::lock_guard<std::recursive_mutex> lock(end->mutex);
    if (end->object)
      std::forward<Use>(use)(*end->object);
    return end->object != nullptr;
  }

private:
  struct End {
    std::recursive_mutex mutex;
    T *object = nullptr;
  };
  std::shared_ptr<End> end;
};

} // namespace device_shim::detail
