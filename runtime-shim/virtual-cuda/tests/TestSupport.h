// What every test includes, compiled once.
#pragma once

#include "DeviceErrors.h"

#include <gtest/gtest.h>
