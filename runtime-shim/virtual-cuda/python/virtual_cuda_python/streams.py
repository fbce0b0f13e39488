"""The base classes of torch.cuda.Stream and torch.cuda.Event. Those of any device, which PyTorch has in every build, do
the work: they ask the device."""


def classes(torch_c, native):
    class _CudaStreamBase(torch_c.Stream):
        def __new__(cls, priority=0, stream_id=0, device_index=0, device_type=0, stream_ptr=0):
            if stream_ptr:
                raise NotImplementedError(
                    "torch.cuda.ExternalStream: there is no CUDA on virtual GPUs whose stream it could be"
                )
            if device_type:
                return super().__new__(cls, stream_id=stream_id, device_index=device_index, device_type=device_type)
            stream = super().__new__(cls, device=torch_c.device("cuda", native._cuda_getDevice()), priority=priority)
            stream.priority = min(0, max(priority, -5))
            return stream

        priority = 0

        @property
        def cuda_stream(self):
            return self.stream_id

        @staticmethod
        def priority_range():
            return 0, -5

    class _CudaEventBase(torch_c.Event):
        def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
            event = super().__new__(
                cls,
                device=torch_c.device("cuda"),
                enable_timing=enable_timing,
                blocking=blocking,
                interprocess=interprocess,
            )
            event.timed = enable_timing
            return event

        @property
        def cuda_event(self):
            return self.event_id

        def elapsed_time(self, end_event):
            if not self.timed or not getattr(end_event, "timed", True):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            return native.elapsed_time(self, end_event)

        def ipc_handle(self):
            raise NotImplementedError("torch.cuda.Event.ipc_handle: virtual GPUs share no events between processes")

        @classmethod
        def from_ipc_handle(cls, device, handle):
            raise NotImplementedError(
                "torch.cuda.Event.from_ipc_handle: virtual GPUs share no events between processes"
            )

    return {"_CudaStreamBase": _CudaStreamBase, "_CudaEventBase": _CudaEventBase}
