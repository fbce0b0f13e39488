#include <dt.h>

namespace ring {
struct Buffer : dt::any {
  void construct(dt::any) { dt::set_empty(*this); }
  void push(const dt::any &value) { dt::append(*this, value); }
  dt::any &latest() { return dt::element(*this, dt::size(*this) - 1); }
  dt::any &oldest() { return dt::element(*this, 0); }
  void each(dt::any function) {
    for (long i = 0; i < dt::size(*this); ++i)
      dt::call(function, dt::element(*this, i));
  }
};
} // namespace ring
