#include "analyzer/models/bodies/Bodies.h"

#include "analyzer/facts/Binary.h"

#include "ModelBodies.inc"

#include <cstdlib>

namespace devicetidy::models {

const Program &bodies() {
  static const Program program = [] {
    std::string error;
    const std::string_view bytes(reinterpret_cast<const char *>(bodyFacts), sizeof bodyFacts);
    std::optional<std::vector<Unit>> units = readBinary(bytes, error);
    if (!units) // the build wrote them with the same format
      std::abort();
    return link(std::move(*units));
  }();
  return program;
}

} // namespace devicetidy::models
