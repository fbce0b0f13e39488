// Sets, and maps that may hold a key several times: sequences in the order of their keys.
#include "std/mapping.h"
#include "std/sequence.h"

namespace std {
using dt::any;

struct set : dt::list {
  void construct(any values, dt::rest) {
    if (!dt::is_list(values)) {
      if (!dt::is_known(values))
        dt::forget(*this);
      else
        dt::set_comparator(*this, values);
      return;
    }
    const long n = dt::size(values);
    for (long i = 0; i != n; ++i)
      insert(dt::element(values, i));
  }
  void construct(dt::place first, dt::place last, dt::rest) { insert(first, last); }

  static any &key(any &held) { return held; }

  long lower(const any &wanted) {
    const any less = dt::comparator(*this);
    const long n = dt::size(*this);
    for (long i = 0; i != n; ++i)
      if (!dt::test(less, dt::element(*this, i), wanted))
        return i;
    return n;
  }
  long upper(const any &wanted) {
    const any less = dt::comparator(*this);
    const long n = dt::size(*this);
    for (long i = 0; i != n; ++i)
      if (dt::test(less, wanted, dt::element(*this, i)))
        return i;
    return n;
  }
  any insert(any value) {
    if (dt::is_braced(value)) {
      const long n = dt::size(value);
      for (long i = 0; i != n; ++i)
        insert(dt::element(value, i));
      return dt::unknown();
    }
    const long at = lower(value);
    if (at != upper(value))
      return dt::pair(dt::position(*this, at), dt::truth(false));
    dt::insert(*this, at, value);
    return dt::pair(dt::position(*this, at), dt::truth(true));
  }
  // A range, or a hint and an element.
  any insert(any first, any last) {
    if (!dt::is_iterator(last) && dt::is_known(last))
      return dt::first(insert(last));
    const long n = dt::distance(first, last);
    for (long i = 0; i != n; ++i)
      insert(dt::each(dt::next(first, i)));
    return dt::unknown();
  }
  void merge(any &other) {
    long at = 0;
    const long n = dt::size(other);
    for (long i = 0; i != n; ++i)
      if (contains(dt::element(other, at))) {
        ++at;
      } else {
        insert(dt::element(other, at));
        dt::erase(other, at, 1);
      }
  }
  any emplace(dt::made value) { return insert(value); }
  any find(const any &wanted) {
    const long at = lower(wanted);
    return at != upper(wanted) ? dt::position(*this, at) : end();
  }
  long count(const any &wanted) { return upper(wanted) - lower(wanted); }
  bool contains(const any &wanted) { return upper(wanted) != lower(wanted); }
  any lower_bound(const any &wanted) { return dt::position(*this, lower(wanted)); }
  any upper_bound(const any &wanted) { return dt::position(*this, upper(wanted)); }
  any equal_range(const any &wanted) { return dt::pair(lower_bound(wanted), upper_bound(wanted)); }
  // A node is the element it holds.
  any extract(any where) {
    const bool isPlace = dt::is_position(where);
    if (!isPlace && !contains(where))
      return dt::null();
    const long at = isPlace ? dt::number(where) : lower(where);
    const any node = dt::element(*this, at);
    dt::erase(*this, at, 1);
    return node;
  }
  any erase(any where) {
    if (dt::is_position(where)) {
      const long at = dt::number(where);
      dt::erase(*this, at, 1);
      return dt::position(*this, at);
    }
    const long from = lower(where);
    const long n = upper(where) - from;
    dt::erase(*this, from, n);
    return dt::count(n);
  }
  any erase(any first, any last) {
    const long at = dt::number(first);
    dt::erase(*this, at, dt::distance(first, last));
    return dt::position(*this, at);
  }
};

struct multiset : set {
  void construct(any values, dt::rest) {
    if (!dt::is_list(values)) {
      if (!dt::is_known(values))
        dt::forget(*this);
      else
        dt::set_comparator(*this, values);
      return;
    }
    const long n = dt::size(values);
    for (long i = 0; i != n; ++i)
      insert(dt::element(values, i));
  }
  void construct(dt::place first, dt::place last, dt::rest) { insert(first, last); }
  any insert(any value) {
    if (dt::is_braced(value)) {
      const long n = dt::size(value);
      for (long i = 0; i != n; ++i)
        insert(dt::element(value, i));
      return dt::unknown();
    }
    const long at = upper(value);
    dt::insert(*this, at, value);
    return dt::position(*this, at);
  }
  // A range, or a hint and an element.
  any insert(any first, any last) {
    if (!dt::is_iterator(last) && dt::is_known(last))
      return insert(last);
    const long n = dt::distance(first, last);
    for (long i = 0; i != n; ++i)
      insert(dt::each(dt::next(first, i)));
    return dt::unknown();
  }
  void merge(any &other) {
    const long n = dt::size(other);
    for (long i = 0; i != n; ++i)
      insert(dt::element(other, i));
    dt::erase(other, 0, n);
  }
  any emplace(dt::made value) { return insert(value); }
};

// In which order the elements stand is not specified, only which they are.
struct unordered_set : set {
  any begin() { return dt::size(*this) == 1 ? dt::position(*this, 0) : dt::unknown(); }
  any cbegin() { return begin(); }
};
struct unordered_multiset : multiset {
  any begin() { return dt::size(*this) == 1 ? dt::position(*this, 0) : dt::unknown(); }
};

// A sequence of pairs in the order of their keys.
struct multimap : dt::list {
  void construct(any values, dt::rest) {
    if (!dt::is_list(values)) {
      if (!dt::is_known(values))
        dt::forget(*this);
      else
        dt::set_comparator(*this, values);
      return;
    }
    const long n = dt::size(values);
    for (long i = 0; i != n; ++i)
      insert(dt::element(values, i));
  }
  void construct(dt::place first, dt::place last, dt::rest) { insert(first, last); }
  long lower(const any &wanted) {
    const any less = dt::comparator(*this);
    const long n = dt::size(*this);
    for (long i = 0; i != n; ++i)
      if (!dt::test(less, dt::first(dt::element(*this, i)), wanted))
        return i;
    return n;
  }
  long upper(const any &wanted) {
    const any less = dt::comparator(*this);
    const long n = dt::size(*this);
    for (long i = 0; i != n; ++i)
      if (dt::test(less, wanted, dt::first(dt::element(*this, i))))
        return i;
    return n;
  }
  any insert(any value) {
    if (dt::is_braced(value)) {
      const long n = dt::size(value);
      for (long i = 0; i != n; ++i)
        insert(dt::element(value, i));
      return dt::unknown();
    }
    const long at = upper(dt::first(value));
    dt::insert(*this, at, value);
    return dt::position(*this, at);
  }
  // A range, or a hint and an element.
  any insert(any first, any last) {
    if (!dt::is_iterator(last) && dt::is_known(last))
      return insert(last);
    const long n = dt::distance(first, last);
    for (long i = 0; i != n; ++i)
      insert(dt::each(dt::next(first, i)));
    return dt::unknown();
  }
  void merge(any &other) {
    const long n = dt::size(other);
    for (long i = 0; i != n; ++i)
      insert(dt::element(other, i));
    dt::erase(other, 0, n);
  }
  any emplace(any key, any value) { return insert(dt::pair(key, value)); }
  any find(const any &wanted) {
    const long at = lower(wanted);
    return at != upper(wanted) ? dt::position(*this, at) : end();
  }
  long count(const any &wanted) { return upper(wanted) - lower(wanted); }
  bool contains(const any &wanted) { return upper(wanted) != lower(wanted); }
  any lower_bound(const any &wanted) { return dt::position(*this, lower(wanted)); }
  any upper_bound(const any &wanted) { return dt::position(*this, upper(wanted)); }
  any equal_range(const any &wanted) { return dt::pair(lower_bound(wanted), upper_bound(wanted)); }
  // A node is the element it holds.
  any extract(any where) {
    const bool isPlace = dt::is_position(where);
    if (!isPlace && !contains(where))
      return dt::null();
    const long at = isPlace ? dt::number(where) : lower(where);
    const any node = dt::element(*this, at);
    dt::erase(*this, at, 1);
    return node;
  }
  any erase(any where) {
    if (dt::is_position(where)) {
      const long at = dt::number(where);
      dt::erase(*this, at, 1);
      return dt::position(*this, at);
    }
    const long from = lower(where);
    const long n = upper(where) - from;
    dt::erase(*this, from, n);
    return dt::count(n);
  }
  any erase(any first, any last) {
    const long at = dt::number(first);
    dt::erase(*this, at, dt::distance(first, last));
    return dt::position(*this, at);
  }
};
struct unordered_multimap : multimap {
  any begin() { return dt::size(*this) == 1 ? dt::position(*this, 0) : dt::unknown(); }
};

} // namespace std
