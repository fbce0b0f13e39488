"""What the models of libraries share. What Python has no words for are functions of dt, too: Models.cpp has them."""

import dt
import torch


@dt.models("dt.device_of_process")
def device_of_process():
    """Where libraries put things when nobody says it: on the GPU of the rank, which they make current."""
    dt.own_gpu(dt.rank("LOCAL_RANK"), dt.rank("local_process_index"))
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dt.models("dt.backend_of_process")
def backend_of_process():
    """What libraries join the ranks with when nobody says it."""
    return "nccl" if torch.cuda.is_available() else "gloo"


@dt.models("dt.placed")
def placed(model, device_map):
    """A map puts the whole model on one device, or spreads it over those that there are."""
    device = dt.device_of_map(device_map)
    if device is not None:
        return model.to(device)
    return dt.spread(model) if torch.cuda.is_available() else model
