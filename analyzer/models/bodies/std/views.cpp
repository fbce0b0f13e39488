// Views of elements that others hold.
#include "dt.h"

namespace std {
using dt::any;

struct span : any {
  void construct(any &whole) {
    if (dt::is_view(whole))
      static_cast<any &>(*this) = whole;
    else
      show(dt::position(whole, 0), dt::size(whole));
  }
  void construct(dt::place first, long count) { show(first, count); }
  void construct(dt::place first, dt::place last) { show(first, dt::distance(first, last)); }
  void show(const any &first, long count) { static_cast<any &>(*this) = dt::view(*this, first, count); }

  any begin() { return dt::view_begin(*this); }
  any end() { return dt::next(begin(), size()); }
  any rbegin() { return dt::reversed(end()); }
  any rend() { return dt::reversed(begin()); }
  any data() { return begin(); }
  long size() { return dt::view_size(*this); }
  bool empty() { return size() == 0; }

  any &operator[](long i) { return dt::at(dt::next(begin(), i)); }
  any &front() { return dt::at(begin()); }
  any &back() { return dt::at(dt::next(begin(), size() - 1)); }

  any first(long count) { return dt::view(*this, begin(), count); }
  any last(long count) { return dt::view(*this, dt::next(begin(), size() - count), count); }
  any subspan(long from) { return dt::view(*this, dt::next(begin(), from), size() - from); }
  any subspan(long from, long count) {
    return count < 0 ? subspan(from) : dt::view(*this, dt::next(begin(), from), count); // dynamic_extent
  }
};

} // namespace std
