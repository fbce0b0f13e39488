// Function objects: what they do is said by their names (models_std.csv).
#include "dt.h"

namespace std {

struct function_object : dt::any {
  void construct() {}
};
struct less : function_object {};
struct greater : function_object {};
struct less_equal : function_object {};
struct greater_equal : function_object {};
struct equal_to : function_object {};
struct not_equal_to : function_object {};
struct plus : function_object {};
struct minus : function_object {};
struct multiplies : function_object {};

} // namespace std
