// Sets, and maps that may hold a key several times: sequences in the order of their keys.
#include "std/mapping.h"
#include "std/sequence.h"

namespace dt {

enum class Keys { once, repeated };
enum class Elements { keys, entries };

template <Elements elements, Keys keys> struct ordered : list {
  void construct(any values, rest) {
    if (is_list(values))
      insert_list(values);
    else if (is_known(values))
      set_comparator(*this, values);
    else
      forget(*this);
  }
  void construct(place first, place last, rest) { insert(first, last); }

  static const any &key(const any &held) {
    if constexpr (elements == Elements::entries)
      return first(held);
    else
      return held;
  }
  long lower(const any &wanted) {
    const any less = comparator(*this);
    const long n = size(*this);
    for (long i = 0; i != n; ++i)
      if (!test(less, key(element(*this, i)), wanted))
        return i;
    return n;
  }
  long upper(const any &wanted) {
    const any less = comparator(*this);
    const long n = size(*this);
    for (long i = 0; i != n; ++i)
      if (test(less, wanted, key(element(*this, i))))
        return i;
    return n;
  }

  any insert(any value) {
    if (is_braced(value)) {
      insert_list(value);
      return unknown();
    }
    const long at = upper(key(value));
    if constexpr (keys == Keys::repeated) {
      dt::insert(*this, at, value);
      return position(*this, at);
    } else {
      const long there = lower(key(value));
      if (there != at)
        return pair(position(*this, there), truth(false));
      dt::insert(*this, at, value);
      return pair(position(*this, at), truth(true));
    }
  }
  // Nodes: as in a map.
  any insert(node &handle) {
    const any held = node_entry(handle);
    node_entry(handle) = null();
    if constexpr (keys == Keys::repeated)
      return is_null(held) ? end() : insert(held);
    else if (is_null(held))
      return node_result(end(), false, make_node(null()));
    else if (contains(key(held)))
      return node_result(find(key(held)), false, make_node(held));
    else
      return node_result(first(insert(held)), true, make_node(null()));
  }
  any insert(any, node &handle) {
    if constexpr (keys == Keys::repeated) {
      return insert(handle);
    } else {
      if (handle.empty())
        return end();
      const any held = node_entry(handle);
      if (!contains(key(held)))
        insert(handle);
      return find(key(held));
    }
  }
  // A range, or a hint and an element.
  any insert(any from, any to) {
    if (is_iterator(to) || !is_known(to)) {
      const long n = distance(from, to);
      for (long i = 0; i != n; ++i)
        insert(each(next(from, i)));
      return unknown();
    }
    if constexpr (keys == Keys::repeated)
      return insert(to);
    else
      return first(insert(to));
  }
  void insert_list(const any &values) {
    const long n = size(values);
    for (long i = 0; i != n; ++i)
      insert(element(values, i));
  }
  any emplace(made value) { return insert(value); }
  // Of a key that may be here once only, what is here already stays in `other`.
  void merge(any &other) {
    long at = 0;
    const long n = size(other);
    for (long i = 0; i != n; ++i)
      if (keys == Keys::once && contains(key(element(other, at)))) {
        ++at;
      } else {
        insert(element(other, at));
        dt::erase(other, at, 1);
      }
  }

  any find(const any &wanted) {
    const long at = lower(wanted);
    return at != upper(wanted) ? position(*this, at) : end();
  }
  long count(const any &wanted) { return upper(wanted) - lower(wanted); }
  bool contains(const any &wanted) { return upper(wanted) != lower(wanted); }
  any lower_bound(const any &wanted) { return position(*this, lower(wanted)); }
  any upper_bound(const any &wanted) { return position(*this, upper(wanted)); }
  any equal_range(const any &wanted) { return pair(lower_bound(wanted), upper_bound(wanted)); }

  any extract(any where) {
    const bool isPlace = is_position(where);
    if (!isPlace && !contains(where))
      return make_node(null());
    const long at = isPlace ? number(where) : lower(where);
    const any held = element(*this, at);
    dt::erase(*this, at, 1);
    return make_node(held);
  }
  any erase(any where) {
    if (is_position(where))
      return list::erase(where);
    const long from = lower(where);
    const long n = upper(where) - from;
    dt::erase(*this, from, n);
    return dt::count(n);
  }
  any erase(any first, any last) { return list::erase(first, last); }
};

// In which order the elements stand is not specified, only which they are.
template <class Ordered> struct unordered : Ordered {
  any begin() { return size(*this) == 1 ? position(*this, 0) : unknown(); }
  any cbegin() { return begin(); }
};

} // namespace dt

namespace std {

struct set : dt::ordered<dt::Elements::keys, dt::Keys::once> {};
struct multiset : dt::ordered<dt::Elements::keys, dt::Keys::repeated> {};
struct multimap : dt::ordered<dt::Elements::entries, dt::Keys::repeated> {
  dt::any emplace(dt::any key, dt::any value) { return insert(dt::pair(key, value)); }
};
struct unordered_set : dt::unordered<set> {};
struct unordered_multiset : dt::unordered<multiset> {};
struct unordered_multimap : dt::unordered<multimap> {};

} // namespace std
