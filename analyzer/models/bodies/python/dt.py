"""What the models of libraries share. What Python has no words for are functions of dt, too: Models.cpp has them."""

import dt
import torch


@dt.models("dt.device_of_process")
def device_of_process():
    """Where libraries put things when nobody says it."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
