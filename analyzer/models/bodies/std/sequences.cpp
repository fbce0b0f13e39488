// Sequences: what each does its own way.
#include "std/algorithms.h"
#include "std/mapping.h"
#include "std/sequence.h"

namespace std {
using dt::any;

struct vector : dt::list {};
struct deque : dt::list {};
struct array : dt::list {};
struct initializer_list : dt::list {};
struct span : dt::list {
  any &operator[](long i) { return dt::element(*this, i); }
};

struct list : dt::list {
  // Iterators stay where they are when others come: also the end.
  void push_back(any value) { dt::insert(*this, dt::size(*this), value); }

  void splice(any where, any &other) {
    const long at = dt::number(where);
    const long n = dt::size(other);
    for (long i = 0; i != n; ++i)
      dt::move_element(other, 0, *this, at + i);
  }
  void splice(any where, any &other, any it) {
    dt::move_element(other, dt::number(it), *this, dt::number(where));
  }
  void splice(any where, any &other, any first, any last) {
    const long at = dt::number(where);
    const long from = dt::number(first);
    const long n = dt::distance(first, last);
    for (long i = 0; i != n; ++i)
      dt::move_element(other, from, *this, at + i);
  }
  void merge(any &other) { merge(other, dt::less_function()); }
  void merge(any &other, any less) {
    const long n = dt::size(other);
    for (long i = 0; i != n; ++i)
      dt::move_element(other, 0, *this, dt::size(*this));
    std::sort(begin(), end(), less);
  }
  void sort() { std::sort(begin(), end(), dt::less_function()); }
  void sort(any less) { std::sort(begin(), end(), less); }
  void reverse() { std::reverse(begin(), end()); }
  long remove(const any &value) { return cut(std::remove(begin(), end(), value)); }
  long remove_if(any predicate) { return cut(std::remove_if(begin(), end(), predicate)); }
  long unique() { return cut(std::unique(begin(), end())); }
  long unique(any same) { return cut(std::unique(begin(), end(), same)); }

  long cut(any from) {
    const long n = dt::distance(from, end());
    dt::erase(*this, dt::number(from), n);
    return n;
  }
};

// before_begin() stands in front of element 0.
struct forward_list : list {
  any before_begin() { return dt::position(*this, -1); }
  any cbefore_begin() { return dt::position(*this, -1); }
  any insert_after(any where, any value) {
    if (dt::is_braced(value))
      return insert_after(where, dt::position(value, 0), dt::position(value, dt::size(value)));
    return insert(dt::next(where, 1), value);
  }
  any insert_after(any where, long count, any value) {
    insert(dt::next(where, 1), count, value);
    return dt::next(where, count);
  }
  any insert_after(any where, any first, any last) {
    const long n = dt::distance(first, last);
    insert_range(dt::next(where, 1), first, last);
    return dt::next(where, n);
  }
  any emplace_after(any where, dt::made value) {
    const long at = dt::number(where) + 1;
    dt::insert(*this, at, value);
    return dt::position(*this, at);
  }
  any erase_after(any where) { return erase(dt::next(where, 1)); }
  any erase_after(any first, any last) {
    const long at = dt::number(first) + 1;
    dt::erase(*this, at, dt::distance(first, last) - 1);
    return dt::position(*this, at);
  }
  void splice_after(any where, any &other) { splice(dt::next(where, 1), other); }
  void splice_after(any where, any &other, any it) { splice(dt::next(where, 1), other, dt::next(it, 1)); }
  void splice_after(any where, any &other, any first, any last) {
    splice(dt::next(where, 1), other, dt::next(first, 1), last);
  }
};

struct stack : dt::list {
  void push(any value) { dt::append(*this, value); }
  any &emplace(dt::made value) {
    dt::append(*this, value);
    return top();
  }
  any &top() { return dt::element(*this, dt::size(*this) - 1); }
  void pop() { pop_back(); }
};

struct queue : dt::list {
  void push(any value) { dt::append(*this, value); }
  any &emplace(dt::made value) {
    dt::append(*this, value);
    return dt::element(*this, dt::size(*this) - 1);
  }
  void pop() { pop_front(); }
};

// The elements stand in the order in which they come out.
struct priority_queue : dt::list {
  void construct(any less) {
    if (dt::is_list(less))
      static_cast<any &>(*this) = less;
    else
      dt::set_comparator(*this, less);
  }
  void construct(any less, any values) {
    if (dt::is_position(less)) {
      const long n = dt::distance(less, values);
      for (long i = 0; i != n; ++i)
        push(dt::at(dt::next(less, i)));
      return;
    }
    dt::set_comparator(*this, less);
    const long n = dt::size(values);
    for (long i = 0; i != n; ++i)
      push(dt::element(values, i));
  }
  void push(any value) {
    const any less = dt::comparator(*this);
    const long n = dt::size(*this);
    for (long i = 0; i != n; ++i) {
      const bool isBehind = dt::test(less, dt::element(*this, i), value);
      if (!dt::is_certain(isBehind)) {
        dt::append(*this, value);
        dt::shuffle(begin(), end());
        return;
      }
      if (isBehind) {
        dt::insert(*this, i, value);
        return;
      }
    }
    dt::append(*this, value);
  }
  void emplace(dt::made value) { push(value); }
  any &top() { return dt::element(*this, 0); }
  void pop() { pop_front(); }
};

any to_array(any elements) { return elements; }

long erase(any &container, const any &value) {
  any begin = dt::position(container, 0);
  any end = dt::position(container, dt::size(container));
  any from = std::remove(begin, end, value);
  const long n = dt::distance(from, end);
  dt::erase(container, dt::number(from), n);
  return n;
}
long erase_if(any &container, any predicate) {
  if (dt::is_map(container))
    return dt::erase_entries_if(container, predicate);
  any begin = dt::position(container, 0);
  any end = dt::position(container, dt::size(container));
  any from = std::remove_if(begin, end, predicate);
  const long n = dt::distance(from, end);
  dt::erase(container, dt::number(from), n);
  return n;
}

} // namespace std
