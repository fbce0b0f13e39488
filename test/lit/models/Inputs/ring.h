// A library that is not part of the project: its bodies are not looked at.
#pragma once

namespace ring {
template <typename T> class Buffer {
public:
  explicit Buffer(int size);
  void push(const T &value);
  const T &latest() const;
  const T &oldest() const;
  template <typename F> void each(F function) {
    for (int i = 0; i < count; ++i)
      function(items[i]);
  }

private:
  T *items;
  int count;
};
} // namespace ring
