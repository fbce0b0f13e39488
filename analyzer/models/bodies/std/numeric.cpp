// Algorithms that fold a range.
#include "dt.h"

namespace std {
using dt::any;

any accumulate(any first, any last, any sum, any operation) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    sum = dt::call(operation, sum, dt::at(dt::next(first, i)));
  return sum;
}
any accumulate(any first, any last, any sum) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    sum = dt::plus(sum, dt::at(dt::next(first, i)));
  return sum;
}
any reduce(any first, any last, any sum, any operation) {
  return std::accumulate(first, last, sum, operation);
}
any reduce(any first, any last, any sum) { return std::accumulate(first, last, sum); }
any reduce(any first, any last) { return std::accumulate(dt::next(first, 1), last, dt::at(first)); }

any inner_product(any first, any last, any second, any sum) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    sum = dt::plus(sum, dt::times(dt::at(dt::next(first, i)), dt::at(dt::next(second, i))));
  return sum;
}
any inner_product(any first, any last, any second, any sum, any add, any multiply) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    sum = dt::call(add, sum, dt::call(multiply, dt::at(dt::next(first, i)), dt::at(dt::next(second, i))));
  return sum;
}
any transform_reduce(any first, any last, any second, any sum) {
  return std::inner_product(first, last, second, sum);
}
any transform_reduce(any first, any last, any second, any sum, any add, any multiply) {
  return std::inner_product(first, last, second, sum, add, multiply);
}
any transform_reduce(any first, any last, any sum, any add, any change) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i)
    sum = dt::call(add, sum, dt::call(change, dt::at(dt::next(first, i))));
  return sum;
}

any partial_sum(any first, any last, any out, any operation) {
  const long n = dt::distance(first, last);
  any sum = dt::unknown();
  for (long i = 0; i != n; ++i) {
    if (i == 0)
      sum = dt::at(first);
    else
      sum = dt::call(operation, sum, dt::at(dt::next(first, i)));
    dt::put(dt::next(out, i), sum);
  }
  return dt::next(out, n);
}
any partial_sum(any first, any last, any out) {
  return std::partial_sum(first, last, out, dt::plus_function());
}
any inclusive_scan(any first, any last, any out) {
  return std::partial_sum(first, last, out, dt::plus_function());
}
any inclusive_scan(any first, any last, any out, any operation) {
  return std::partial_sum(first, last, out, operation);
}
any exclusive_scan(any first, any last, any out, any sum, any operation) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i) {
    const any &value = dt::at(dt::next(first, i));
    const any next = dt::call(operation, sum, value);
    dt::put(dt::next(out, i), sum);
    sum = next;
  }
  return dt::next(out, n);
}
any exclusive_scan(any first, any last, any out, any sum) {
  return std::exclusive_scan(first, last, out, sum, dt::plus_function());
}
any adjacent_difference(any first, any last, any out, any operation) {
  const long n = dt::distance(first, last);
  for (long i = 0; i != n; ++i) {
    if (i == 0)
      dt::put(out, dt::at(first));
    else
      dt::put(dt::next(out, i),
              dt::call(operation, dt::at(dt::next(first, i)), dt::at(dt::next(first, i - 1))));
  }
  return dt::next(out, n);
}
any adjacent_difference(any first, any last, any out) {
  return std::adjacent_difference(first, last, out, dt::minus_function());
}

} // namespace std
