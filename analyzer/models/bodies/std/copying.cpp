// Algorithms that write a range: copies, moves, fills, transforms.
#include "dt.h"

namespace std {
using dt::any;

any copy(any first, any last, any out) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(out, i), dt::at(dt::next(first, i)));
  return dt::next(out, n);
}

any copy_n(any first, long n, any out) {
  for (long i = 0; i < n; ++i)
    dt::put(dt::next(out, i), dt::at(dt::next(first, i)));
  return dt::next(out, n);
}

any copy_if(any first, any last, any out, any predicate) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (dt::test(predicate, dt::at(dt::next(first, i)))) {
      dt::put(out, dt::at(dt::next(first, i)));
      out = dt::next(out, 1);
    }
  return out;
}

any copy_backward(any first, any last, any out) {
  const long n = dt::distance(first, last);
  for (long i = 1; i <= n; ++i)
    dt::put(dt::next(out, -i), dt::at(dt::next(last, -i)));
  return dt::next(out, -n);
}

any move(any first, any last, any out) { return std::copy(first, last, out); }
any move_backward(any first, any last, any out) { return std::copy_backward(first, last, out); }

any reverse_copy(any first, any last, any out) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(out, i), dt::at(dt::next(last, -1 - i)));
  return dt::next(out, n);
}

any rotate_copy(any first, any middle, any last, any out) {
  return std::copy(first, middle, std::copy(middle, last, out));
}

void fill(any first, any last, const any &value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(first, i), value);
}

any fill_n(any first, long n, const any &value) {
  for (long i = 0; i < n; ++i)
    dt::put(dt::next(first, i), value);
  return dt::next(first, n);
}

void generate(any first, any last, any function) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(first, i), dt::call(function));
}

any generate_n(any first, long n, any function) {
  for (long i = 0; i < n; ++i)
    dt::put(dt::next(first, i), dt::call(function));
  return dt::next(first, n);
}

any transform(any first, any last, any out, any function) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(out, i), dt::call(function, dt::at(dt::next(first, i))));
  return dt::next(out, n);
}

any transform(any first, any last, any second, any out, any function) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(out, i), dt::call(function, dt::at(dt::next(first, i)), dt::at(dt::next(second, i))));
  return dt::next(out, n);
}

void replace(any first, any last, const any &old, const any &value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (dt::equal(dt::at(dt::next(first, i)), old))
      dt::put(dt::next(first, i), value);
}

void replace_if(any first, any last, any predicate, const any &value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    if (dt::test(predicate, dt::at(dt::next(first, i))))
      dt::put(dt::next(first, i), value);
}

any replace_copy_if(any first, any last, any out, any predicate, const any &value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i) {
    if (dt::test(predicate, dt::at(dt::next(first, i))))
      dt::put(dt::next(out, i), value);
    else
      dt::put(dt::next(out, i), dt::at(dt::next(first, i)));
  }
  return dt::next(out, n);
}

any replace_copy(any first, any last, any out, const any &old, const any &value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i) {
    if (dt::equal(dt::at(dt::next(first, i)), old))
      dt::put(dt::next(out, i), value);
    else
      dt::put(dt::next(out, i), dt::at(dt::next(first, i)));
  }
  return dt::next(out, n);
}

any swap_ranges(any first, any last, any second) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::swap(dt::at(dt::next(first, i)), dt::at(dt::next(second, i)));
  return dt::next(second, n);
}

void iter_swap(any a, any b) { dt::swap(dt::at(a), dt::at(b)); }

void iota(any first, any last, any value) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    dt::put(dt::next(first, i), dt::plus(value, dt::count(i)));
}

any uninitialized_copy(any first, any last, any out) { return std::copy(first, last, out); }
any uninitialized_move(any first, any last, any out) { return std::copy(first, last, out); }

any sample(any first, any last, any out, long n, any) {
  for (long i = 0; i < n; ++i)
    dt::put(dt::next(out, i), dt::any_between(first, last));
  return dt::next(out, n);
}

} // namespace std
