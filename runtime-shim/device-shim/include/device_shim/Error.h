//===- Error.h - the exceptions of device_shim ------------------*- C++ -*-===//
//
// What device_shim throws. Every message names the rank where it has one, the cause, and what to do next.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <stdexcept>
#include <string>

namespace device_shim {

/// Base of everything the library throws on purpose.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The job could not be set up: a missing or garbled environment variable, a port in use, peers that did not
/// come, a device that does not exist.
class InitError : public Error {
public:
  using Error::Error;
};

/// Another rank ended or stopped answering, left the job while this one still needed it or called another
/// operation, or a collective ran into its timeout. No communicator of the job can be used any more.
class PeerError : public Error {
public:
  using Error::Error;
};

/// Tensors are not on the devices on which an operation needs them.
class DeviceError : public Error {
public:
  using Error::Error;
};

/// A model, an option, an argument or a call that the library cannot work with; the message says what it can
/// work with.
class UsageError : public Error {
public:
  using Error::Error;
};

} // namespace device_shim
