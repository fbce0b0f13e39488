// Maps, for bodies that meet one.
#pragma once

#include "dt.h"

namespace dt {

// A map keeps an entry for each key (solve/library/std/Maps.h).
bool is_map(const any &value);
/// Is `where` an iterator of this map?
bool is_in(any &map, const any &where);
bool is_iterator(const any &value);
/// Is it in no particular order that the entries from here on come?
bool is_in_any_order(const any &iterator);
bool has_entry(any &map, const any &key);
/// An iterator at the entry, or at the end.
any find_entry(any &map, const any &key);
/// What is kept under `key`; a new entry where there is none.
any &held_under(any &map, const any &key);
/// What is kept under `key`, which throws when there is nothing.
any &held_at(any &map, const any &key);
/// The part of a tuple that has just one.
any only_part(const any &tuple);
/// A pair of the place and whether it is new; what is there stays.
any insert_entry(any &map, const any &key, const any &value);
any set_entry(any &map, const any &key, const any &value);
/// How many entries are gone.
long erase_key(any &map, const any &key);
/// The iterator after the one that is gone.
any erase_entry(any &map, const any &iterator);
any first_entry(any &map);
any end_entry(any &map);
long entries(any &map);
void clear_entries(any &map);
/// What stands at `iterator`, in a body that comes to every element once and for which their order does not
/// matter.
any &each(const any &iterator);
/// An iterator at the entry that `iterator` of such a body stands at: which one it is, is known.
any found(const any &iterator);

long erase_entries_if(any &map, any predicate);

} // namespace dt
