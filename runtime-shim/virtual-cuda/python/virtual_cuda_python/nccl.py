"""torch.distributed's backend "nccl": its class is in native, and works on Gloo."""

from datetime import timedelta

TIMEOUT = timedelta(minutes=10)  # NCCL's in PyTorch


class Options:
    """ProcessGroupNCCL.Options"""

    def __init__(self, is_high_priority_stream=False):
        self.is_high_priority_stream = is_high_priority_stream
        self._timeout = TIMEOUT
        self.split_from = None
        self.split_color = 0
        self.global_ranks_in_group = []
        self.group_name = ""


def enable(torch_c, native):
    """Adds the class when torch.distributed makes its part of torch._C."""
    initialize = getattr(torch_c, "_c10d_init", None)
    if not initialize:
        return

    def with_nccl():
        done = initialize()
        complete(torch_c._distributed_c10d, native)
        return done

    torch_c._c10d_init = with_nccl


def complete(c10d, native):
    native.add_process_group()

    class ProcessGroupNCCL(native.ProcessGroupNCCL):
        def __init__(self, store, rank, size, options=None, timeout=TIMEOUT):
            self.options = options or Options()
            if options is None:
                self.options._timeout = timeout
            gloo = c10d.ProcessGroupGloo(c10d.PrefixStore("gloo", store), rank, size, timeout=self.options._timeout)
            super().__init__(gloo, store)

    ProcessGroupNCCL.Options = Options
    c10d.ProcessGroupNCCL = ProcessGroupNCCL
    c10d._DEFAULT_PG_NCCL_TIMEOUT = TIMEOUT
