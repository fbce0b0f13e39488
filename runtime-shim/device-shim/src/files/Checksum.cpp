#include "files/Checksum.h"

#include <array>

namespace device_shim::detail {
namespace {

using Table = std::array<uint32_t, 256>;

// What each value of a byte adds.
constexpr Table makeTable() {
  Table table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1) ^ ((sum & 1) ? 0xEDB88320U : 0U);
    table[byte] = sum;
  }
  return table;
}

constexpr Table kTable = makeTable();

} // namespace

void Checksum::add(const void *data, size_t size) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  for (size_t i = 0; i < size; ++i)
    state = (state >> 8) ^ kTable[(state ^ bytes[i]) & 0xFFU];
}

} // namespace device_shim::detail
