"""DeepSpeed 0.14 imports two names that PyTorch has dropped since; nothing here uses them."""

from torch.distributed.elastic.agent.server import api

for name in ("log", "_get_socket_with_port"):
    if not hasattr(api, name):
        setattr(api, name, None)
