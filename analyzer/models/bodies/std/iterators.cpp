// Functions around iterators.
#include "dt.h"

namespace std {
using dt::any;

long distance(any first, any last) { return dt::distance(first, last); }
any next(any at) { return dt::next(at, 1); }
any next(any at, long n) { return dt::next(at, n); }
any prev(any at) { return dt::next(at, -1); }
any prev(any at, long n) { return dt::next(at, -n); }
void advance(any &at, long n) { at = dt::next(at, n); }

any begin(any &container) { return dt::method(container, "begin"); }
any end(any &container) { return dt::method(container, "end"); }
any cbegin(any &container) { return dt::method(container, "begin"); }
any cend(any &container) { return dt::method(container, "end"); }
any rbegin(any &container) { return dt::method(container, "rbegin"); }
any rend(any &container) { return dt::method(container, "rend"); }
any crbegin(any &container) { return dt::method(container, "rbegin"); }
any crend(any &container) { return dt::method(container, "rend"); }
any data(any &container) { return dt::method(container, "data"); }
any size(any &container) { return dt::method(container, "size"); }
any ssize(any &container) { return dt::method(container, "size"); }
any empty(any &container) { return dt::method(container, "empty"); }

any back_inserter(any &container) { return dt::back_inserter(container); }
any front_inserter(any &container) { return dt::front_inserter(container); }
any inserter(any &container, any at) { return dt::inserter(container, at); }
any make_move_iterator(any at) { return at; }
any make_reverse_iterator(any at) { return dt::reversed(at); }

struct move_iterator : any {
  void construct(any at) { static_cast<any &>(*this) = at; }
};
struct reverse_iterator : any {
  void construct(any at) { static_cast<any &>(*this) = dt::is_position(at) ? dt::reversed(at) : at; }
};
struct back_insert_iterator : any {
  void construct(any &container) { static_cast<any &>(*this) = dt::back_inserter(container); }
};
struct front_insert_iterator : any {
  void construct(any &container) { static_cast<any &>(*this) = dt::front_inserter(container); }
};
struct insert_iterator : any {
  void construct(any &container, any at) { static_cast<any &>(*this) = dt::inserter(container, at); }
};

} // namespace std
