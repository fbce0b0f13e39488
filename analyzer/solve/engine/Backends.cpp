#include "analyzer/solve/engine/Backends.h"

#include "analyzer/models/Models.h"

#include <algorithm>
#include <cctype>

namespace devicetidy {

Backends backendsIn(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  Backends backends;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at), name = part.substr(part.find(':') + 1);
    backends.forGpus |= models::hasRole(name, "gpu_backend");
    backends.forCpu |= models::hasRole(name, "cpu_backend");
    at = end + 1;
  }
  return backends;
}

Backends backendsOf(const Program &program) {
  Backends backends;
  for (const Name id : program.order)
    if (const Function &function = *program.function(id); !function.isModel)
      for (const Block &block : function.blocks)
        for (const Fact &fact : block.facts)
          if (fact.kind == FactKind::Literal && fact.literal == LiteralKind::String) {
            const Backends named = backendsIn(fact.name.str());
            backends.forGpus |= named.forGpus;
            backends.forCpu |= named.forCpu;
          }
  return backends;
}

} // namespace devicetidy
