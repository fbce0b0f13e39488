// What happens when host code touches isolated device memory.
#pragma once

namespace vcuda {

// Installs the handler of invalid accesses. Faults elsewhere go to whoever handled them before.
void installFaultHandler();

} // namespace vcuda
