// The tensors that an iterator goes through (ATen/TensorIterator.h), as a list.
#include "dt.h"

namespace at {

struct TensorIteratorConfig : dt::any {
  void construct() { static_cast<dt::any &>(*this) = dt::empty_list(); }
  dt::any &add_output(dt::any tensor) { return add(tensor); }
  dt::any &add_input(dt::any tensor) { return add(tensor); }
  dt::any &add_const_input(dt::any tensor) { return add(tensor); }
  dt::any &add_owned_output(dt::any tensor) { return add(tensor); }
  dt::any &add_owned_input(dt::any tensor) { return add(tensor); }
  dt::any &add_owned_const_input(dt::any tensor) { return add(tensor); }
  dt::any &add_borrowed_output(dt::any tensor) { return add(tensor); }
  dt::any &add_borrowed_input(dt::any tensor) { return add(tensor); }
  dt::any &add_borrowed_const_input(dt::any tensor) { return add(tensor); }
  dt::any &set_check_mem_overlap(dt::any) { return *this; }
  dt::any &check_all_same_dtype(dt::any) { return *this; }
  dt::any &check_all_same_device(dt::any) { return *this; }
  dt::any &allow_cpu_scalars(dt::any) { return *this; }
  dt::any &promote_inputs_to_common_dtype(dt::any) { return *this; }
  dt::any &promote_integer_inputs_to_float(dt::any) { return *this; }
  dt::any &cast_common_dtype_to_outputs(dt::any) { return *this; }
  dt::any &enforce_safe_casting_to_output(dt::any) { return *this; }
  dt::any &enforce_linear_iteration(dt::any) { return *this; }
  dt::any &resize_outputs(dt::any) { return *this; }
  dt::any &is_reduction(dt::any) { return *this; }
  dt::any &declare_static_dtype(dt::any) { return *this; }
  dt::any &declare_static_shape(dt::any) { return *this; }
  dt::any &declare_static_shape(dt::any, dt::any) { return *this; }
  dt::any build() { return *this; }

private:
  dt::any &add(const dt::any &tensor) {
    dt::append(*this, tensor);
    return *this;
  }
};

} // namespace at
