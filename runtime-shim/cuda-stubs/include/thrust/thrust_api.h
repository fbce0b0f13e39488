// Stand-in for Thrust: what the host calls of it. Nothing implements it: it is for reading sources with
// kernels.
#pragma once

#include "../cuda_runtime.h"

#ifdef __cplusplus
#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace thrust {

// What an algorithm gives: an iterator, a number or nothing.
struct algorithm_result {
  template <typename T> operator T() const;
  template <typename T> friend std::ptrdiff_t operator-(const algorithm_result &, const T &) { return 0; }
  algorithm_result operator+(std::ptrdiff_t) const;
};
#define VIRTUAL_THRUST(name)                                                                                 \
  template <typename... Arguments> algorithm_result name(Arguments &&...) VIRTUAL_CUDA_BODY({})
VIRTUAL_THRUST(copy);
VIRTUAL_THRUST(copy_if);
VIRTUAL_THRUST(copy_n);
VIRTUAL_THRUST(distance);
VIRTUAL_THRUST(count);
VIRTUAL_THRUST(count_if);
VIRTUAL_THRUST(exclusive_scan);
VIRTUAL_THRUST(inclusive_scan);
VIRTUAL_THRUST(fill);
VIRTUAL_THRUST(fill_n);
VIRTUAL_THRUST(for_each);
VIRTUAL_THRUST(gather);
VIRTUAL_THRUST(generate);
VIRTUAL_THRUST(inner_product);
VIRTUAL_THRUST(lower_bound);
VIRTUAL_THRUST(upper_bound);
VIRTUAL_THRUST(max_element);
VIRTUAL_THRUST(min_element);
VIRTUAL_THRUST(reduce);
VIRTUAL_THRUST(remove_if);
VIRTUAL_THRUST(scatter);
VIRTUAL_THRUST(sequence);
VIRTUAL_THRUST(sort);
VIRTUAL_THRUST(sort_by_key);
VIRTUAL_THRUST(stable_sort);
VIRTUAL_THRUST(stable_sort_by_key);
VIRTUAL_THRUST(transform);
VIRTUAL_THRUST(transform_reduce);
VIRTUAL_THRUST(unique);
VIRTUAL_THRUST(unique_by_key);
VIRTUAL_THRUST(adjacent_difference);
VIRTUAL_THRUST(all_of);
VIRTUAL_THRUST(any_of);
VIRTUAL_THRUST(none_of);
VIRTUAL_THRUST(binary_search);
VIRTUAL_THRUST(equal);
VIRTUAL_THRUST(exclusive_scan_by_key);
VIRTUAL_THRUST(inclusive_scan_by_key);
VIRTUAL_THRUST(find);
VIRTUAL_THRUST(find_if);
VIRTUAL_THRUST(for_each_n);
VIRTUAL_THRUST(is_sorted);
VIRTUAL_THRUST(iota);
VIRTUAL_THRUST(merge);
VIRTUAL_THRUST(minmax_element);
VIRTUAL_THRUST(mismatch);
VIRTUAL_THRUST(partition);
VIRTUAL_THRUST(partition_copy);
VIRTUAL_THRUST(stable_partition);
VIRTUAL_THRUST(remove);
VIRTUAL_THRUST(remove_copy_if);
VIRTUAL_THRUST(replace);
VIRTUAL_THRUST(replace_if);
VIRTUAL_THRUST(reverse);
VIRTUAL_THRUST(reverse_copy);
VIRTUAL_THRUST(scatter_if);
VIRTUAL_THRUST(set_difference);
VIRTUAL_THRUST(set_intersection);
VIRTUAL_THRUST(set_union);
VIRTUAL_THRUST(shuffle);
VIRTUAL_THRUST(swap_ranges);
VIRTUAL_THRUST(tabulate);
VIRTUAL_THRUST(transform_exclusive_scan);
VIRTUAL_THRUST(transform_inclusive_scan);
VIRTUAL_THRUST(transform_if);
VIRTUAL_THRUST(uninitialized_fill);
VIRTUAL_THRUST(unique_copy);
VIRTUAL_THRUST(unique_by_key_copy);
VIRTUAL_THRUST(gather_if);
VIRTUAL_THRUST(equal_range);
VIRTUAL_THRUST(merge_by_key);
VIRTUAL_THRUST(set_union_by_key);
#undef VIRTUAL_THRUST
template <typename... Arguments>
std::pair<algorithm_result, algorithm_result> reduce_by_key(Arguments &&...) VIRTUAL_CUDA_BODY({});

struct execution_policy {
  template <typename What> execution_policy on(What &&) const;
  template <typename What> execution_policy operator()(What &&) const;
};
struct host_policy {};
inline constexpr execution_policy device{};
inline constexpr host_policy host{}, seq{};
namespace cuda {
inline constexpr execution_policy par{}, par_nosync{};
}

template <typename T> struct device_ptr {
  device_ptr() = default;
  explicit device_ptr(T *pointer) : pointer(pointer) {}
  template <typename U, typename = std::enable_if_t<std::is_convertible<U *, T *>::value>>
  device_ptr(const device_ptr<U> &other) : pointer(other.get()) {}
  T *get() const { return pointer; }
  std::add_lvalue_reference_t<T> operator*() const;
  std::add_lvalue_reference_t<T> operator[](std::ptrdiff_t) const;
  device_ptr operator+(std::ptrdiff_t) const;
  device_ptr operator-(std::ptrdiff_t) const;
  std::ptrdiff_t operator-(const device_ptr &) const;

private:
  T *pointer = nullptr;
};
template <typename T> device_ptr<T> device_pointer_cast(T *pointer) { return device_ptr<T>(pointer); }
template <typename T> T *raw_pointer_cast(const device_ptr<T> &pointer) { return pointer.get(); }
template <typename T> T *raw_pointer_cast(T *pointer) { return pointer; }

template <typename T, typename Allocator = void> struct device_vector {
  typedef device_ptr<T> iterator;
  device_vector() = default;
  explicit device_vector(std::size_t count);
  device_vector(std::size_t count, const T &value);
  template <typename First, typename Last> device_vector(First first, Last last);
  iterator begin() const;
  iterator end() const;
  device_ptr<T> data() const;
  std::size_t size() const;
  bool empty() const;
  void resize(std::size_t count);
  void resize(std::size_t count, const T &value);
  void push_back(const T &value);
  void clear();
  void pop_back();
  void reserve(std::size_t count);
  T &operator[](std::size_t index) const;
  T &front() const;
  T &back() const;
};
template <typename T> struct host_vector : std::vector<T> {
  using std::vector<T>::vector;
};

template <typename T> struct counting_iterator {
  explicit counting_iterator(T first);
  counting_iterator operator+(std::ptrdiff_t) const;
};
template <typename T> counting_iterator<T> make_counting_iterator(T first);
template <typename... Arguments>
algorithm_result make_transform_iterator(Arguments &&...) VIRTUAL_CUDA_BODY({});
template <typename... Arguments> algorithm_result make_zip_iterator(Arguments &&...) VIRTUAL_CUDA_BODY({});
template <typename T> algorithm_result make_constant_iterator(const T &value);

template <typename... T> using tuple = std::tuple<T...>;
template <typename A, typename B> using pair = std::pair<A, B>;
using std::get;
using std::make_pair;
using std::make_tuple;
using std::tie;

template <typename T = void> struct plus {};
template <typename T = void> struct minus {};
template <typename T = void> struct multiplies {};
template <typename T = void> struct maximum {};
template <typename T = void> struct minimum {};
template <typename T = void> struct greater {};
template <typename T = void> struct less {};
template <typename T = void> struct equal_to {};
template <typename T = void> struct identity {};
template <typename T = void> struct divides {};
template <typename T = void> struct modulus {};
template <typename T = void> struct greater_equal {};
template <typename T = void> struct less_equal {};
template <typename T = void> struct not_equal_to {};
template <typename T = void> struct logical_and {};
template <typename T = void> struct logical_or {};
template <typename T = void> struct logical_not {};
template <typename T = void> struct negate {};
template <typename T = void> struct square {};
template <typename T = void> struct bit_and {};
template <typename T = void> struct bit_or {};
template <typename T = void> struct bit_xor {};
template <typename T = void> struct project1st {};
template <typename T = void> struct project2nd {};
template <typename A, typename B = void> struct unary_function {};
template <typename A, typename B, typename C> struct binary_function {};

} // namespace thrust
#endif
