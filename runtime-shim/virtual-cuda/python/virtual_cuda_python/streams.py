"""The base classes of torch.cuda.Stream and torch.cuda.Event. What PyTorch has of them in every build does the work: it
asks the device. Before 2.x that is a stream alone, which can do nothing."""

import time


def refuse(what):
    raise NotImplementedError(f"torch.cuda.{what}")


# cudaStream_t of the streams, as numbers that look like pointers. CUDA has 0, 1 and 2 for those of each device.
FIRST, APART, MOST = 1 << 16, 16, 32


def pointer_of(number):
    return number and FIRST + APART * number


def number_of(pointer):
    if pointer in (0, 1, 2):
        return 0
    number, rest = divmod(pointer - FIRST, APART)
    if rest or not 0 < number <= MOST:
        refuse("ExternalStream: virtual GPUs know their own streams, and this is a stream of CUDA")
    return number


class AnyStream:
    priority = 0

    def with_priority(self, priority):
        self.priority = min(0, max(priority, -5))
        return self

    @staticmethod
    def priority_range():
        return 0, -5


class AnyEvent:
    @staticmethod
    def check_timed(*events):
        if not all(getattr(each, "timed", True) for each in events):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")

    def ipc_handle(self):
        refuse("Event.ipc_handle: virtual GPUs share no events between processes")

    @classmethod
    def from_ipc_handle(cls, device, handle):
        refuse("Event.from_ipc_handle: virtual GPUs share no events between processes")


def classes(torch_c, native):
    def data_of(pointer, device):
        return number_of(pointer), device, 1  # the number of kCUDA

    class _CudaStreamBase(AnyStream, torch_c.Stream):
        def __new__(cls, priority=0, stream_id=0, device_index=0, device_type=0, stream_ptr=0):
            new = super().__new__
            if stream_ptr:
                stream_id, device_index, device_type = data_of(stream_ptr, native._cuda_getDevice())
            if device_type:
                return new(cls, stream_id=stream_id, device_index=device_index, device_type=device_type)
            current = torch_c.device("cuda", native._cuda_getDevice())
            return new(cls, device=current, priority=priority).with_priority(priority)

        @property
        def cuda_stream(self):
            return pointer_of(self.stream_id)

    class _CudaEventBase(AnyEvent, torch_c.Event):
        def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
            options = {"enable_timing": enable_timing, "blocking": blocking, "interprocess": interprocess}
            event = super().__new__(cls, device=torch_c.device("cuda"), **options)
            event.timed = enable_timing
            return event

        @property
        def cuda_event(self):
            return self.event_id

        def elapsed_time(self, end_event):
            self.check_timed(self, end_event)
            return native.elapsed_time(self, end_event)

    return {
        "_CudaStreamBase": _CudaStreamBase,
        "_CudaEventBase": _CudaEventBase,
        "_cuda_getStreamFromExternal": data_of,
    }


def classes_of_1(torch_c, native):
    """Work is done when a call returns, so nothing waits, and the clock of the host is that of the devices."""

    class _CudaStreamBase(AnyStream, torch_c.Stream):
        def __new__(cls, priority=0, _cdata=None, stream_ptr=0):
            if stream_ptr:
                _cdata = native.stream_of(number_of(stream_ptr))
            stream = super().__new__(cls, _cdata=native.new_stream() if _cdata is None else _cdata)
            return stream.with_priority(priority)

        @property
        def cuda_stream(self):
            return pointer_of(native.id_of_stream(self._cdata))

        def query(self):
            return True

        def synchronize(self):
            pass

    class _CudaEventBase(AnyEvent):
        def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
            event = super().__new__(cls)
            event.timed, event.device, event.recorded = enable_timing, None, None
            return event

        @property
        def cuda_event(self):
            return id(self) if self.recorded else 0

        def record(self, stream):
            if self.device not in (None, stream.device):
                raise RuntimeError(
                    f"Event device {self.device.index} does not match recording stream's device {stream.device.index}."
                )
            self.device, self.recorded = stream.device, time.perf_counter()

        def wait(self, stream):
            pass

        def query(self):
            return True

        def synchronize(self):
            pass

        def elapsed_time(self, end_event):
            self.check_timed(self, end_event)
            if not (self.recorded and end_event.recorded):
                raise RuntimeError("Both events must be recorded before calculating elapsed time.")
            return 1000 * (end_event.recorded - self.recorded)

    return {"_CudaStreamBase": _CudaStreamBase, "_CudaEventBase": _CudaEventBase}
