// Algorithms that move elements about: sort, rotate, partition, remove.
#include "std/algorithms.h"

namespace std {
using dt::any;

void reverse(any first, any last) {
  const long n = dt::distance(first, last);
  for (long i = 0; i < n / 2; ++i)
    dt::swap(dt::at(dt::next(first, i)), dt::at(dt::next(first, n - 1 - i)));
}

any rotate(any first, any middle, any last) {
  const long n = dt::distance(first, last);
  const long m = dt::distance(first, middle);
  any turned = dt::empty_list();
  for (long i = 0; i != n; ++i)
    dt::append(turned, dt::at(dt::next(first, (i + m) % n)));
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(first, i), dt::element(turned, i));
  return dt::next(first, n - m);
}

any shift_left(any first, any last, long by) {
  const long n = dt::distance(first, last);
  for (long i = 0; i < n - by; ++i)
    dt::put(dt::next(first, i), dt::at(dt::next(first, i + by)));
  return dt::next(first, n - by);
}

any shift_right(any first, any last, long by) {
  const long n = dt::distance(first, last);
  for (long i = n - 1; i >= by; --i)
    dt::put(dt::next(first, i), dt::at(dt::next(first, i - by)));
  return dt::next(first, by);
}

void sort(any first, any last, any less) {
  const long n = dt::distance(first, last);
  for (long i = 1; i < n; ++i)
    for (long k = 0; k != i; ++k) {
      any &held = dt::at(dt::next(first, i - k));
      any &before = dt::at(dt::next(first, i - k - 1));
      const bool isBefore = dt::test(less, held, before);
      if (!dt::is_certain(isBefore)) {
        dt::shuffle(first, last);
        return;
      }
      if (!isBefore)
        break;
      dt::swap(held, before);
    }
}
void sort(any first, any last) { std::sort(first, last, dt::less_function()); }
void stable_sort(any first, any last, any less) { std::sort(first, last, less); }
void stable_sort(any first, any last) { std::sort(first, last, dt::less_function()); }
// Where the others stand is not specified.
static void sortFirst(any first, any middle, any last, any less) {
  std::sort(first, last, less);
  dt::shuffle(middle, last);
}
void partial_sort(any first, any middle, any last, any less) { sortFirst(first, middle, last, less); }
void partial_sort(any first, any middle, any last) { sortFirst(first, middle, last, dt::less_function()); }
static void sortAround(any first, any nth, any last, any less) {
  std::sort(first, last, less);
  dt::shuffle(first, nth);
  dt::shuffle(dt::next(nth, 1), last);
}
void nth_element(any first, any nth, any last, any less) { sortAround(first, nth, last, less); }
void nth_element(any first, any nth, any last) { sortAround(first, nth, last, dt::less_function()); }
void shuffle(any first, any last, any) { dt::shuffle(first, last); }
void random_shuffle(any first, any last) { dt::shuffle(first, last); }
void make_heap(any first, any last) { dt::shuffle(first, last); }
void make_heap(any first, any last, any) { dt::shuffle(first, last); }
void push_heap(any first, any last) { dt::shuffle(first, last); }
void push_heap(any first, any last, any) { dt::shuffle(first, last); }
void pop_heap(any first, any last) { dt::shuffle(first, last); }
void pop_heap(any first, any last, any) { dt::shuffle(first, last); }
void sort_heap(any first, any last) { std::sort(first, last); }
void sort_heap(any first, any last, any less) { std::sort(first, last, less); }

any stable_partition(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  any yes = dt::empty_list(), no = dt::empty_list();
  for (long i = 0; i != n; ++i) {
    if (dt::test(predicate, dt::at(dt::next(first, i))))
      dt::append(yes, dt::at(dt::next(first, i)));
    else
      dt::append(no, dt::at(dt::next(first, i)));
  }
  const long m = dt::size(yes);
  for (long i = 0; i != m; ++i)
    dt::put(dt::next(first, i), dt::element(yes, i));
  const long r = dt::size(no);
  for (long i = 0; i != r; ++i)
    dt::put(dt::next(first, m + i), dt::element(no, i));
  return dt::next(first, m);
}

any partition(any first, any last, any predicate) {
  any middle = std::stable_partition(first, last, predicate);
  dt::shuffle(first, middle);
  dt::shuffle(middle, last);
  return middle;
}

any partition_point(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(predicate, dt::at(dt::next(first, i))))
      return dt::next(first, i);
  return last;
}

bool is_partitioned(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  bool isOver = false;
  for (long i = 0; i != n; ++i) {
    if (!dt::test(predicate, dt::at(dt::next(first, i))))
      isOver = true;
    else if (isOver)
      return false;
  }
  return true;
}

any partition_copy(any first, any last, any yes, any no, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i) {
    if (dt::test(predicate, dt::at(dt::next(first, i)))) {
      dt::put(yes, dt::at(dt::next(first, i)));
      yes = dt::next(yes, 1);
    } else {
      dt::put(no, dt::at(dt::next(first, i)));
      no = dt::next(no, 1);
    }
  }
  return dt::pair(yes, no);
}

any remove_if(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  long kept = 0;
  for (long i = 0; i != n; ++i)
    if (!dt::test(predicate, dt::at(dt::next(first, i)))) {
      dt::put(dt::next(first, kept), dt::at(dt::next(first, i)));
      ++kept;
    }
  for (long i = kept; i < n; ++i) // moved from
    dt::put(dt::next(first, i), dt::unknown());
  return dt::next(first, kept);
}

any remove(any first, any last, const any &value) {
  const any wanted = value;
  const long n = dt::distance(first, last);
  long kept = 0;
  for (long i = 0; i != n; ++i)
    if (!dt::equal(dt::at(dt::next(first, i)), wanted)) {
      dt::put(dt::next(first, kept), dt::at(dt::next(first, i)));
      ++kept;
    }
  for (long i = kept; i < n; ++i)
    dt::put(dt::next(first, i), dt::unknown());
  return dt::next(first, kept);
}

any remove_copy_if(any first, any last, any out, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(predicate, dt::at(dt::next(first, i)))) {
      dt::put(out, dt::at(dt::next(first, i)));
      out = dt::next(out, 1);
    }
  return out;
}

any remove_copy(any first, any last, any out, const any &value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::equal(dt::at(dt::next(first, i)), value)) {
      dt::put(out, dt::at(dt::next(first, i)));
      out = dt::next(out, 1);
    }
  return out;
}

any unique(any first, any last, any same) {
  const long n = dt::distance(first, last);
  long kept = 1;
  for (long i = 1; i < n; ++i)
    if (!dt::test(same, dt::at(dt::next(first, kept - 1)), dt::at(dt::next(first, i)))) {
      dt::put(dt::next(first, kept), dt::at(dt::next(first, i)));
      ++kept;
    }
  if (n == 0)
    return last;
  for (long i = kept; i < n; ++i)
    dt::put(dt::next(first, i), dt::unknown());
  return dt::next(first, kept);
}
any unique(any first, any last) { return std::unique(first, last, dt::equal_function()); }

any unique_copy(any first, any last, any out, any same) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (i == 0 || !dt::test(same, dt::at(dt::next(first, i - 1)), dt::at(dt::next(first, i)))) {
      dt::put(out, dt::at(dt::next(first, i)));
      out = dt::next(out, 1);
    }
  return out;
}
any unique_copy(any first, any last, any out) {
  return std::unique_copy(first, last, out, dt::equal_function());
}

any merge(any a, any aEnd, any b, any bEnd, any out, any less) {
  const long n = dt::distance(a, aEnd), m = dt::distance(b, bEnd);
  long i = 0, j = 0;
  for (long k = 0; k != n + m; ++k) {
    bool takesSecond = false;
    if (i == n)
      takesSecond = true;
    else if (j != m)
      takesSecond = dt::test(less, dt::at(dt::next(b, j)), dt::at(dt::next(a, i)));
    if (takesSecond) {
      dt::put(dt::next(out, k), dt::at(dt::next(b, j)));
      ++j;
    } else {
      dt::put(dt::next(out, k), dt::at(dt::next(a, i)));
      ++i;
    }
  }
  return dt::next(out, n + m);
}
any merge(any a, any aEnd, any b, any bEnd, any out) {
  return std::merge(a, aEnd, b, bEnd, out, dt::less_function());
}

// Is an element equal to `value`, in the order of `less`, in the range?
static bool holds(any first, any last, const any &value, any less) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(less, dt::at(dt::next(first, i)), value) &&
        !dt::test(less, value, dt::at(dt::next(first, i))))
      return true;
  return false;
}

// The elements of a that b has, or has not.
static any chosen(any a, any aEnd, any b, any bEnd, any out, any less, bool wanted) {
  const long n = dt::distance(a, aEnd);
  for (long i = 0; i != n; ++i)
    if (holds(b, bEnd, dt::at(dt::next(a, i)), less) == wanted) {
      dt::put(out, dt::at(dt::next(a, i)));
      out = dt::next(out, 1);
    }
  return out;
}

any set_intersection(any a, any aEnd, any b, any bEnd, any out) {
  return chosen(a, aEnd, b, bEnd, out, dt::less_function(), true);
}
any set_intersection(any a, any aEnd, any b, any bEnd, any out, any less) {
  return chosen(a, aEnd, b, bEnd, out, less, true);
}
any set_difference(any a, any aEnd, any b, any bEnd, any out) {
  return chosen(a, aEnd, b, bEnd, out, dt::less_function(), false);
}
any set_difference(any a, any aEnd, any b, any bEnd, any out, any less) {
  return chosen(a, aEnd, b, bEnd, out, less, false);
}
// The elements of a, and those of b that a has not, in their order.
static any joined(any a, any aEnd, any b, any bEnd, any out, any less, bool isSymmetric) {
  any own = dt::empty_list();
  any others = dt::empty_list();
  if (isSymmetric)
    chosen(a, aEnd, b, bEnd, dt::back_inserter(own), less, false);
  else
    std::copy(a, aEnd, dt::back_inserter(own));
  chosen(b, bEnd, a, aEnd, dt::back_inserter(others), less, false);
  return std::merge(dt::position(own, 0), dt::position(own, dt::size(own)), dt::position(others, 0),
                    dt::position(others, dt::size(others)), out, less);
}
any set_union(any a, any aEnd, any b, any bEnd, any out) {
  return joined(a, aEnd, b, bEnd, out, dt::less_function(), false);
}
any set_union(any a, any aEnd, any b, any bEnd, any out, any less) {
  return joined(a, aEnd, b, bEnd, out, less, false);
}
any set_symmetric_difference(any a, any aEnd, any b, any bEnd, any out) {
  return joined(a, aEnd, b, bEnd, out, dt::less_function(), true);
}
bool includes(any a, any aEnd, any b, any bEnd) {
  const long n = dt::distance(b, bEnd);
  for (long i = 0; i != n; ++i)
    if (!holds(a, aEnd, dt::at(dt::next(b, i)), dt::less_function()))
      return false;
  return true;
}

void inplace_merge(any first, any, any last) { std::sort(first, last); }
void inplace_merge(any first, any, any last, any less) { std::sort(first, last, less); }

bool next_permutation(any first, any last) {
  dt::shuffle(first, last);
  return dt::unknown_truth();
}
bool prev_permutation(any first, any last) {
  dt::shuffle(first, last);
  return dt::unknown_truth();
}

} // namespace std
