// Memory that host and devices share: device memory of which programs have the address for the host.
#pragma once

namespace virtualdevices {

// Whether an address lies inside live managed memory.
bool isManaged(const void *pointer);

// Before managed memory is freed; nothing for other pointers.
void forgetManaged(const void *pointer);

} // namespace virtualdevices
