// Algorithms that look at a range.
#include "std/mapping.h"

namespace std {
using dt::any;

any for_each(any first, any last, any function) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::call(function, dt::each(dt::next(first, i)));
  return function;
}

any for_each_n(any first, long n, any function) {
  for (long i = 0; i < n; ++i)
    dt::call(function, dt::at(dt::next(first, i)));
  return dt::next(first, n);
}

// The only entry of a range without an order that the predicate holds for.
static any find_only(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  long found = n;
  for (long i = 0; i != n; ++i)
    if (dt::test(predicate, dt::each(dt::next(first, i)))) {
      if (found != n)
        return dt::unknown();
      found = i;
    }
  return found == n ? last : dt::found(dt::next(first, found));
}

any find_if(any first, any last, any predicate) {
  if (dt::is_in_any_order(first))
    return find_only(first, last, predicate);
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (dt::test(predicate, dt::at(dt::next(first, i))))
      return dt::next(first, i);
  return last;
}

any find_if_not(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(predicate, dt::at(dt::next(first, i))))
      return dt::next(first, i);
  return last;
}

any find(any first, any last, const any &value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (dt::equal(dt::at(dt::next(first, i)), value))
      return dt::next(first, i);
  return last;
}

long count_if(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  long found = 0;
  for (long i = 0; i != n; ++i)
    if (dt::test(predicate, dt::each(dt::next(first, i))))
      ++found;
  return found;
}

long count(any first, any last, const any &value) {
  const long n = dt::distance(first, last);
  long found = 0;
  for (long i = 0; i != n; ++i)
    if (dt::equal(dt::at(dt::next(first, i)), value))
      ++found;
  return found;
}

bool all_of(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(predicate, dt::each(dt::next(first, i))))
      return false;
  return true;
}

bool any_of(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (dt::test(predicate, dt::each(dt::next(first, i))))
      return true;
  return false;
}

bool none_of(any first, any last, any predicate) { return !std::any_of(first, last, predicate); }

any adjacent_find(any first, any last) {
  const long n = dt::distance(first, last);
  for (long i = 1; i < n; ++i)
    if (dt::equal(dt::at(dt::next(first, i - 1)), dt::at(dt::next(first, i))))
      return dt::next(first, i - 1);
  return last;
}

any adjacent_find(any first, any last, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 1; i < n; ++i)
    if (dt::test(predicate, dt::at(dt::next(first, i - 1)), dt::at(dt::next(first, i))))
      return dt::next(first, i - 1);
  return last;
}

any find_first_of(any first, any last, any wanted, any wantedEnd) {
  const long n = dt::distance(first, last);
  const long m = dt::distance(wanted, wantedEnd);
  for (long i = 0; i != n; ++i)
    for (long j = 0; j != m; ++j)
      if (dt::equal(dt::at(dt::next(first, i)), dt::at(dt::next(wanted, j))))
        return dt::next(first, i);
  return last;
}

// Does the range at `first` begin with the `m` elements at `wanted`?
static bool begins(any first, any wanted, long m) {
  for (long j = 0; j != m; ++j)
    if (!dt::equal(dt::at(dt::next(first, j)), dt::at(dt::next(wanted, j))))
      return false;
  return true;
}

any search(any first, any last, any wanted, any wantedEnd) {
  const long n = dt::distance(first, last);
  const long m = dt::distance(wanted, wantedEnd);
  for (long i = 0; i <= n - m; ++i)
    if (begins(dt::next(first, i), wanted, m))
      return dt::next(first, i);
  return last;
}

any find_end(any first, any last, any wanted, any wantedEnd) {
  const long n = dt::distance(first, last);
  const long m = dt::distance(wanted, wantedEnd);
  for (long i = n - m; i >= 0; --i)
    if (begins(dt::next(first, i), wanted, m))
      return dt::next(first, i);
  return last;
}

any search_n(any first, any last, long m, const any &value) {
  const long n = dt::distance(first, last);
  long run = 0;
  for (long i = 0; i != n; ++i) {
    run = dt::equal(dt::at(dt::next(first, i)), value) ? run + 1 : 0;
    if (run == m)
      return dt::next(first, i + 1 - m);
  }
  return last;
}

bool equal(any first, any last, any second) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::equal(dt::at(dt::next(first, i)), dt::at(dt::next(second, i))))
      return false;
  return true;
}

any mismatch(any first, any last, any second, any same) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(same, dt::at(dt::next(first, i)), dt::at(dt::next(second, i))))
      return dt::pair(dt::next(first, i), dt::next(second, i));
  return dt::pair(last, dt::next(second, n));
}

bool equal(any first, any last, any second, any same) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(same, dt::at(dt::next(first, i)), dt::at(dt::next(second, i))))
      return false;
  return true;
}

any mismatch(any first, any last, any second) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::equal(dt::at(dt::next(first, i)), dt::at(dt::next(second, i))))
      return dt::pair(dt::next(first, i), dt::next(second, i));
  return dt::pair(last, dt::next(second, n));
}

// The number of the first element that is not `less` than `value`.
static long lowerNumber(any first, any last, const any &value, any less) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (!dt::test(less, dt::at(dt::next(first, i)), value))
      return i;
  return n;
}

static long upperNumber(any first, any last, const any &value, any less) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (dt::test(less, value, dt::at(dt::next(first, i))))
      return i;
  return n;
}

any lower_bound(any first, any last, const any &value, any less) {
  return dt::next(first, lowerNumber(first, last, value, less));
}
any lower_bound(any first, any last, const any &value) {
  return dt::next(first, lowerNumber(first, last, value, dt::less_function()));
}
any upper_bound(any first, any last, const any &value, any less) {
  return dt::next(first, upperNumber(first, last, value, less));
}
any upper_bound(any first, any last, const any &value) {
  return dt::next(first, upperNumber(first, last, value, dt::less_function()));
}
any equal_range(any first, any last, const any &value, any less) {
  return dt::pair(std::lower_bound(first, last, value, less), std::upper_bound(first, last, value, less));
}
any equal_range(any first, any last, const any &value) {
  return std::equal_range(first, last, value, dt::less_function());
}
bool binary_search(any first, any last, const any &value, any less) {
  const long at = lowerNumber(first, last, value, less);
  return at != dt::distance(first, last) && !dt::test(less, value, dt::at(dt::next(first, at)));
}
bool binary_search(any first, any last, const any &value) {
  return std::binary_search(first, last, value, dt::less_function());
}

bool lexicographical_compare(any a, any aEnd, any b, any bEnd) {
  const long n = dt::distance(a, aEnd), m = dt::distance(b, bEnd);
  for (long i = 0; i != n; ++i) {
    if (i == m || dt::less(dt::at(dt::next(b, i)), dt::at(dt::next(a, i))))
      return false;
    if (dt::less(dt::at(dt::next(a, i)), dt::at(dt::next(b, i))))
      return true;
  }
  return n < m;
}

bool is_sorted(any first, any last, any less) {
  const long n = dt::distance(first, last);
  for (long i = 1; i < n; ++i)
    if (dt::test(less, dt::at(dt::next(first, i)), dt::at(dt::next(first, i - 1))))
      return false;
  return true;
}
bool is_sorted(any first, any last) { return std::is_sorted(first, last, dt::less_function()); }

// The first of those that none is before in the order of `less`; unknown where that cannot be told.
static any extreme(any first, any last, any less, bool isLargest, bool isLast) {
  const long n = dt::distance(first, last);
  long best = 0;
  for (long i = 1; i < n; ++i) {
    const any &candidate = dt::at(dt::next(first, i));
    const any &held = dt::at(dt::next(first, best));
    const bool isBefore = dt::test(less, candidate, held), isBehind = dt::test(less, held, candidate);
    if (!dt::is_certain(isBefore) || !dt::is_certain(isBehind))
      return dt::unknown();
    if (isLargest ? (isLast ? !isBefore : isBehind) : isBefore)
      best = i;
  }
  return n == 0 ? last : dt::next(first, best);
}

any min_element(any first, any last) { return extreme(first, last, dt::less_function(), false, false); }
any min_element(any first, any last, any less) { return extreme(first, last, less, false, false); }
any max_element(any first, any last) { return extreme(first, last, dt::less_function(), true, false); }
any max_element(any first, any last, any less) { return extreme(first, last, less, true, false); }
any minmax_element(any first, any last) {
  return dt::pair(std::min_element(first, last), extreme(first, last, dt::less_function(), true, true));
}
any minmax_element(any first, any last, any less) {
  return dt::pair(std::min_element(first, last, less), extreme(first, last, less, true, true));
}

static any &lesser(any &a, any &b, any less, bool isLargest) {
  if (!dt::is_number(a) && !dt::is_number(b)) {
    const bool isBefore = isLargest ? dt::test(less, a, b) : dt::test(less, b, a);
    if (!dt::is_certain(isBefore))
      return dt::either(a, b);
  }
  if (isLargest ? dt::test(less, a, b) : dt::test(less, b, a))
    return b;
  return a;
}

any &min(any &a, any &b) { return lesser(a, b, dt::less_function(), false); }
any &min(any &a, any &b, any less) { return lesser(a, b, less, false); }
any &max(any &a, any &b) { return lesser(a, b, dt::less_function(), true); }
any &max(any &a, any &b, any less) { return lesser(a, b, less, true); }
any &min(any &list) {
  return dt::at(
      extreme(dt::position(list, 0), dt::position(list, dt::size(list)), dt::less_function(), false, false));
}
any &max(any &list) {
  return dt::at(
      extreme(dt::position(list, 0), dt::position(list, dt::size(list)), dt::less_function(), true, false));
}
any minmax(any &a, any &b) { return dt::test(dt::less_function(), b, a) ? dt::pair(b, a) : dt::pair(a, b); }
any &clamp(any &value, any &low, any &high) { return std::min(std::max(value, low), high); }

} // namespace std

// Of <cstdlib> and <cmath>.
long abs(long n) {
  if (!dt::is_certain(n < 0))
    return dt::number(dt::unknown());
  return n < 0 ? -n : n;
}

namespace std {
long abs(long n) { return ::abs(n); }
} // namespace std
