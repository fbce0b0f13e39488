// Algorithms of std::ranges that take iterators into the container besides it. The others are those of std,
// over all of the container.
#include "dt.h"

namespace std {
dt::any rotate(dt::any first, dt::any middle, dt::any last);
void partial_sort(dt::any first, dt::any middle, dt::any last);
void nth_element(dt::any first, dt::any nth, dt::any last);
dt::any transform(dt::any first, dt::any last, dt::any second, dt::any out, dt::any function);
dt::any swap_ranges(dt::any first, dt::any last, dt::any second);
dt::any transform(dt::any first, dt::any last, dt::any out, dt::any function);

namespace ranges {
using dt::any;

static any first(any &list) { return dt::position(list, 0); }
static any last(any &list) { return dt::position(list, dt::size(list)); }

any rotate(any &list, any middle) { return std::rotate(first(list), middle, last(list)); }
void partial_sort(any &list, any middle) { std::partial_sort(first(list), middle, last(list)); }
void nth_element(any &list, any nth) { std::nth_element(first(list), nth, last(list)); }
any swap_ranges(any &a, any &b) { return std::swap_ranges(first(a), last(a), first(b)); }
any transform(any &a, any &b, any out, any function) {
  return std::transform(first(a), last(a), first(b), out, function);
}

any transform(any &list, any out, any function) {
  return std::transform(first(list), last(list), out, function);
}

} // namespace ranges
} // namespace std
