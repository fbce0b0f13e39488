//===- dt.h - what model bodies are written with ----------------*- C++ -*-===//
//
// A model body says in C++ what a library function does. Values of the interpreter carry their own kind, so
// one body serves every element type: each value is a `dt::any`. Bodies are lowered to facts when the tool is
// built (bodies/lower) and run like the code of the program (solve/engine/Bodies.h).
//
//   - A body has the qualified name of what it models: `std::copy`, `std::vector::push_back`. Methods are
//     found by the class of the object, then by its bases; which class models which library class says
//     data/library_types.csv (`std::deque` is a `dt::list`).
//   - `construct` is what constructors do; the object is there already, and empty.
//   - A parameter `any` takes the value, `any &` the place; `long` takes numbers only, which tells overloads
//   of
//     one length apart. `made` takes all further arguments and is the element that is constructed from them.
//   - What is declared here is executed by the interpreter itself (solve/library/std/Primitives.cpp).
//
// What is not known stays unknown: a primitive that is given something it does not know does nothing but
// forget what it may have changed.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace dt {

/// Any value: a tensor, a number, a list, an address ...
struct any {};
/// An iterator, known or not: a parameter of this type takes nothing else.
struct place : any {};
/// The last parameter of a body that constructs an element in place.
struct made : any {};
/// The last parameter of a body: what is given further, as a list of values.
struct rest : any {};

any unknown();
any null();
bool is_null(const any &value);
/// True for certain, or false.
bool is_list(const any &value);
bool is_container(const any &value);
bool is_position(const any &value);
bool is_known(const any &value);
/// Is it a number that is known?
bool is_number(const any &value);
/// Is it written as `{a, b}`?
bool is_braced(const any &value);
/// Is it certain which of the two `value` is?
bool is_certain(bool value);
/// Nothing is known any more of what is there.
void forget(any &value);

// Sequences. Numbers of elements count from 0.
long size(const any &list);
any &element(const any &list, long number);
any empty_list();
/// The list has no elements any more.
void set_empty(any &list);
void append(any &list, const any &value);
/// Puts `value` in front of element `number`; what stands behind it, and what leads there, moves up.
void insert(any &list, long number, const any &value);
/// Puts elements like `value`, an unknown number of them, in front of element `number`.
void insert_some(any &list, long number, const any &value);
/// Takes `count` elements away from `number` on.
void erase(any &list, long number, long count);
/// Takes element `number` of `from` and puts it in front of element `to` of `list`; what leads to it follows.
void move_element(any &from, long number, any &list, long to);
/// The elements from `first` to `last` are in an order that is not known.
void shuffle(const any &first, const any &last);
/// Exchanges what two containers hold; what leads to an element goes with it.
void swap_contents(any &a, any &b);

// Positions: iterators, and pointers into sequences.
any position(const any &list, long number);
long number(const any &position);
any next(const any &position, long by);
long distance(const any &first, const any &last);
/// What stands at `position`; for an inserter, the inserter.
any &at(const any &position);
/// Writes to an output position: over the element, or a new one where it is an inserter.
void put(const any &position, const any &value);
any reversed(const any &base);
/// Any of the elements from `first` to `last`: what they share.
any any_between(const any &first, const any &last);
any inserter(any &container, const any &position);
any back_inserter(any &container);
any front_inserter(any &container);

/// The address of what is there.
any address(const any &value);

// Views: a span is the position it begins at and a number of elements. One that comes from outside is a list.
any view(const any &span, const any &first, long count);
bool is_view(const any &value);
any view_begin(const any &span);
long view_size(const any &span);

/// What the method of this name gives for a container.
any method(any &container, const char *name);

// Calls, and operators of whatever the values are.
any call(const any &function);
any call(const any &function, const any &a);
any call(const any &function, const any &a, const any &b);
any call(const any &function, const any &a, const any &b, const any &c);
/// What a predicate says.
bool test(const any &function, const any &a);
bool test(const any &function, const any &a, const any &b);
any plus(const any &a, const any &b);
any minus(const any &a, const any &b);
any times(const any &a, const any &b);
bool equal(const any &a, const any &b);
bool less(const any &a, const any &b);

inline void swap(any &a, any &b) {
  const any held = a;
  a = b;
  b = held;
}

/// What compares the keys or elements of an ordered container.
any comparator(const any &container);
void set_comparator(any &container, const any &function);

any pair(const any &first, const any &second);
any &first(const any &pair);
any &second(const any &pair);
any truth(bool value);
any count(long value);
bool unknown_truth();
/// One of the two; which is unknown.
any &either(const any &a, const any &b);

// What extract() gives: an entry of a map, an element of a set, or nothing. The standard gives its class no
// name, so its methods are found by its value; a parameter of this type takes nothing else.
struct node : any {
  void construct(node &other);
  void operator=(node &other);
  any &key();
  any &mapped();
  any &value();
  bool empty();
  bool operator!();
  explicit operator bool();
};
/// A node that holds `entry`; an empty one where that is null.
any make_node(const any &entry);
/// What the node holds.
any &node_entry(any &node);
/// What insert() says of a node: where its entry is, whether it is new, and the node if it is not.
any node_result(const any &position, bool inserted, const any &node);

any less_function();
any equal_function();
any plus_function();
any minus_function();

} // namespace dt
