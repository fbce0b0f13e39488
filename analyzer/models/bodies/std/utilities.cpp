// Wrappers of one value, and functions of <utility>.
#include "dt.h"

namespace std {
void swap(dt::any &a, dt::any &b) {
  if (dt::is_container(a) && dt::is_container(b))
    dt::swap_contents(a, b);
  else
    dt::swap(a, b);
}

dt::any to_array(dt::any values) { return values; }

dt::any exchange(dt::any &held, dt::any value) {
  const dt::any before = held;
  held = value;
  return before;
}

struct exchangeable : dt::any {
  void swap(dt::any &other) { dt::swap(*this, other); }
};
struct pair : exchangeable {};
struct tuple : exchangeable {};
struct optional : exchangeable {};
struct variant : exchangeable {};
struct any : exchangeable {};
struct function : exchangeable {};
struct shared_ptr : exchangeable {};
struct weak_ptr : exchangeable {};
struct reference_wrapper : dt::any {
  void construct(dt::any &target) { static_cast<dt::any &>(*this) = dt::address(target); }
};
struct type_info : dt::any {
  bool operator==(const dt::any &other) { return dt::equal(*this, other); }
};
// A flag is true once its function has been called. Where that is not known, it is called now: what it leaves
// is the same.
struct once_flag : dt::any {
  void construct() { static_cast<dt::any &>(*this) = dt::truth(false); }
};
inline bool is_first(dt::any &flag) {
  const bool wasCalled = dt::equal(flag, dt::truth(true));
  const bool isKnown = dt::is_certain(wasCalled);
  flag = dt::truth(true);
  return !(isKnown && wasCalled);
}
void call_once(dt::any &flag, dt::any function) {
  if (is_first(flag))
    dt::call(function);
}
void call_once(dt::any &flag, dt::any function, dt::any a) {
  if (is_first(flag))
    dt::call(function, a);
}
void call_once(dt::any &flag, dt::any function, dt::any a, dt::any b) {
  if (is_first(flag))
    dt::call(function, a, b);
}
struct unique_ptr : exchangeable {
  dt::any release() {
    const dt::any held = *this;
    static_cast<dt::any &>(*this) = dt::null();
    return held;
  }
};

} // namespace std
