// Algorithms that bodies use.
#pragma once

#include "dt.h"

namespace std {

dt::any copy(dt::any first, dt::any last, dt::any out);
void reverse(dt::any first, dt::any last);
dt::any remove_if(dt::any first, dt::any last, dt::any predicate);
dt::any remove(dt::any first, dt::any last, const dt::any &value);
void sort(dt::any first, dt::any last, dt::any less);
dt::any unique(dt::any first, dt::any last);
dt::any unique(dt::any first, dt::any last, dt::any same);

} // namespace std
