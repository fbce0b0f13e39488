// What all sequences have in common.
#pragma once

#include "dt.h"

namespace dt {

// Any container of elements in a row, the library's own or another's.
struct list : any {
  void construct(place first, place last) { append_range(first, last); }
  void construct(place first, long count) { append_range(first, next(first, count)); }

  any begin() { return position(*this, 0); }
  any cbegin() { return position(*this, 0); }
  any end() { return position(*this, size(*this)); }
  any cend() { return position(*this, size(*this)); }
  any rbegin() { return reversed(end()); }
  any crbegin() { return reversed(end()); }
  any rend() { return reversed(begin()); }
  any crend() { return reversed(begin()); }
  any data() { return position(*this, 0); }

  any insert(any where, any value) {
    if (is_braced(value))
      return insert_range(where, position(value, 0), position(value, size(value)));
    const long at = number(where);
    dt::insert(*this, at, value);
    return position(*this, at);
  }
  any insert(any where, long count, any value) {
    const long at = number(where);
    for (long i = 0; i < count; ++i)
      dt::insert(*this, at, value);
    return position(*this, at);
  }
  any insert(any where, place first, place last) { return insert_range(where, first, last); }
  any insert_range(any where, any first, any last) {
    const long at = number(where);
    const long n = distance(first, last);
    if (!is_certain(n == 0)) {
      insert_some(*this, at, any_between(first, last));
      return position(*this, at);
    }
    for (long i = 0; i != n; ++i)
      dt::insert(*this, at + i, dt::at(next(first, i)));
    return position(*this, at);
  }
  any emplace(any where, made value) {
    const long at = number(where);
    dt::insert(*this, at, value);
    return position(*this, at);
  }
  any erase(any where) {
    const long at = number(where);
    dt::erase(*this, at, 1);
    return position(*this, at);
  }
  any erase(any first, any last) {
    const long at = number(first);
    dt::erase(*this, at, distance(first, last));
    return position(*this, at);
  }
  void push_front(any value) { dt::insert(*this, 0, value); }
  any &emplace_front(made value) {
    dt::insert(*this, 0, value);
    return element(*this, 0);
  }
  void pop_back() { dt::erase(*this, size(*this) - 1, 1); }
  void pop_front() { dt::erase(*this, 0, 1); }

  void assign(long count, any value) {
    clear_all();
    for (long i = 0; i < count; ++i)
      append(*this, value);
  }
  void assign(place first, place last) {
    any copied = empty_list();
    const long n = distance(first, last);
    for (long i = 0; i != n; ++i)
      append(copied, at(next(first, i)));
    clear_all();
    append_range(position(copied, 0), position(copied, n));
  }
  void assign(any values) {
    clear_all();
    append_range(position(values, 0), position(values, size(values)));
  }
  void fill(any value) {
    const long n = size(*this);
    for (long i = 0; i != n; ++i)
      element(*this, i) = value;
  }
  void swap(any &other) { swap_contents(*this, other); }
  void reserve(any) {}
  void shrink_to_fit() {}

  void append_range(any first, any last) {
    const long n = distance(first, last);
    for (long i = 0; i != n; ++i)
      append(*this, at(next(first, i)));
  }
  void clear_all() { set_empty(*this); }
};

} // namespace dt
