// Stand-in for the hash maps of cuCollections. Nothing implements it: it is for reading.
#pragma once

#include "../cuda_runtime.h"

#ifdef __cplusplus
#include <cstddef>

namespace cuco {

template <typename T> struct empty_key {
  explicit empty_key(T value);
};
template <typename T> struct empty_value {
  explicit empty_value(T value);
};
template <typename T> struct erased_key {
  explicit erased_key(T value);
};

template <typename Key, typename Value, typename... Options> struct static_map {
  template <typename... Arguments> explicit static_map(std::size_t capacity, Arguments &&...);
  template <typename... Arguments> std::size_t insert(Arguments &&...);
  template <typename... Arguments> void insert_async(Arguments &&...);
  template <typename... Arguments> std::size_t insert_if(Arguments &&...);
  template <typename... Arguments> void insert_or_assign(Arguments &&...);
  template <typename... Arguments> void erase(Arguments &&...);
  template <typename... Arguments> void contains(Arguments &&...) const;
  template <typename... Arguments> void find(Arguments &&...) const;
  template <typename... Arguments> void find_async(Arguments &&...) const;
  template <typename... Arguments> void retrieve_all(Arguments &&...) const;
  std::size_t size() const;
  std::size_t capacity() const;
};

} // namespace cuco
#endif
