// Maps: one entry for each key.
#include "std/mapping.h"

namespace dt {

struct map : any {
  // What else constructors take (comparators, numbers of buckets) says nothing of the entries.
  void construct(any values, rest) {
    if (is_list(values))
      insert_list(values);
    else if (is_map(values) || !is_known(values))
      static_cast<any &>(*this) = values;
  }
  void construct(place first, place last, rest) { insert_range(first, last); }
  any &operator=(any values) {
    if (is_list(values)) {
      clear_entries(*this);
      insert_list(values);
    } else {
      static_cast<any &>(*this) = values;
    }
    return *this;
  }
  void swap(any &other) { swap_contents(*this, other); }

  any begin() { return first_entry(*this); }
  any cbegin() { return first_entry(*this); }
  any end() { return end_entry(*this); }
  any cend() { return end_entry(*this); }
  any rbegin() { return reversed(end()); }
  any crbegin() { return reversed(end()); }
  any rend() { return reversed(begin()); }
  any crend() { return reversed(begin()); }

  long size() { return entries(*this); }
  bool empty() { return entries(*this) == 0; }
  void clear() { clear_entries(*this); }
  void reserve(any) {}
  void rehash(any) {}

  any &operator[](any key) { return held_under(*this, key); }
  any &at(any key) { return held_at(*this, key); }
  any find(any key) { return find_entry(*this, key); }
  bool contains(any key) { return has_entry(*this, key); }
  long count(any key) { return has_entry(*this, key) ? 1 : 0; }

  any insert(any value) {
    if (is_braced(value)) {
      insert_list(value);
      return unknown();
    }
    return insert_entry(*this, first(value), second(value));
  }
  // The node is empty afterwards, also where its key is here already: the result has what it held.
  any insert(node &handle) {
    const any entry = node_entry(handle);
    node_entry(handle) = null();
    if (is_null(entry))
      return node_result(end(), false, make_node(null()));
    if (has_entry(*this, first(entry)))
      return node_result(find(first(entry)), false, make_node(entry));
    return node_result(first(insert_entry(*this, first(entry), second(entry))), true, make_node(null()));
  }
  // With a hint it keeps what it holds then.
  any insert(any, node &handle) {
    if (handle.empty())
      return end();
    const any key = handle.key();
    if (!has_entry(*this, key))
      insert(handle);
    return find(key);
  }
  // A range, a hint and an entry, or a key and a value.
  any insert(any a, any b) {
    if (is_iterator(a) && is_iterator(b)) {
      insert_range(a, b);
      return unknown();
    }
    if (is_in(*this, a))
      return first(insert(b));
    return insert_entry(*this, a, b);
  }
  any emplace(any entry) { return insert(entry); }
  any emplace(any key, made value) { return insert_entry(*this, key, value); }
  any emplace(any, any key, any value) { // std::piecewise_construct
    return insert_entry(*this, only_part(key), only_part(value));
  }
  any emplace_hint(any, any entry) { return first(insert(entry)); }
  any emplace_hint(any, any key, made value) { return first(insert_entry(*this, key, value)); }
  any try_emplace(any key, made value) { return insert_entry(*this, key, value); }
  any insert_or_assign(any key, any value) { return set_entry(*this, key, value); }
  any insert_or_assign(any, any key, any value) { return first(set_entry(*this, key, value)); }

  any erase(any where) {
    if (is_in(*this, where))
      return erase_entry(*this, where);
    return dt::count(erase_key(*this, where));
  }
  any erase(any first, any last) {
    const long n = distance(first, last);
    for (long i = 0; i != n; ++i)
      first = erase_entry(*this, first);
    return n == 0 ? last : first;
  }
  any extract(any where) {
    if (is_in(*this, where)) {
      const any entry = pair(first(dt::at(where)), second(dt::at(where)));
      erase_entry(*this, where);
      return make_node(entry);
    }
    if (!has_entry(*this, where))
      return make_node(null());
    const any entry = pair(where, held_under(*this, where));
    erase_key(*this, where);
    return make_node(entry);
  }
  // What is there already stays in `other`.
  void merge(any &other) {
    any from = first_entry(other);
    const long n = distance(from, end_entry(other));
    for (long i = 0; i != n; ++i) {
      any &entry = each(from);
      if (has_entry(*this, first(entry))) {
        from = next(from, 1);
      } else {
        insert_entry(*this, first(entry), second(entry));
        from = erase_entry(other, from);
      }
    }
  }

  any lower_bound(any key) { return next(first_entry(*this), lower(key)); }
  any upper_bound(any key) {
    const long at = lower(key);
    return next(first_entry(*this), has_entry(*this, key) ? at + 1 : at);
  }
  any equal_range(any key) { return pair(lower_bound(key), upper_bound(key)); }

  long lower(const any &key) {
    const any less = comparator(*this);
    const any from = first_entry(*this);
    const long n = entries(*this);
    for (long i = 0; i != n; ++i)
      if (!test(less, first(dt::at(next(from, i))), key))
        return i;
    return n;
  }
  void insert_list(const any &values) {
    const long n = dt::size(values);
    for (long i = 0; i != n; ++i)
      insert(element(values, i));
  }
  void insert_range(const any &from, const any &to) {
    const long n = distance(from, to);
    for (long i = 0; i != n; ++i)
      insert(each(next(from, i)));
  }
};

long erase_entries_if(any &map, any predicate) {
  any at = first_entry(map);
  const long n = distance(at, end_entry(map));
  long erased = 0;
  for (long i = 0; i != n; ++i)
    if (test(predicate, each(at))) {
      at = erase_entry(map, at);
      ++erased;
    } else {
      at = next(at, 1);
    }
  return erased;
}

void node::construct(node &other) {
  static_cast<any &>(*this) = other;
  node_entry(other) = null();
}
void node::operator=(node &other) { construct(other); }
any &node::key() { return first(node_entry(*this)); }
any &node::mapped() { return second(node_entry(*this)); }
any &node::value() { return node_entry(*this); } // of a set
bool node::empty() { return is_null(node_entry(*this)); }
bool node::operator!() { return is_null(node_entry(*this)); }
node::operator bool() { return !is_null(node_entry(*this)); }

} // namespace dt

namespace std {

struct unordered_map : dt::map {
  dt::any equal_range(dt::any key) {
    const dt::any at = dt::find_entry(*this, key);
    return dt::pair(at, dt::has_entry(*this, key) ? dt::next(at, 1) : at);
  }
};

} // namespace std

namespace torch {
struct OrderedDict : dt::any {
  void reserve(dt::any) {}
};
} // namespace torch
