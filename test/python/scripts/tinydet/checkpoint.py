import io

import torch


def pack(model, optimizer, epoch):
    """A checkpoint in memory, the way it would be on disk."""
    blob = io.BytesIO()
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch}, blob)
    return blob.getvalue()


def unpack(blob):
    return torch.load(io.BytesIO(blob), map_location='cpu')


def weights_only(blob, make_model, make_optimizer, device):
    state = unpack(blob)
    model = make_model()
    model.load_state_dict(state['model'])
    model.to(device)
    return model, make_optimizer(model), state['epoch']


def everything(blob, make_model, make_optimizer, device):
    state = unpack(blob)
    model = make_model()
    optimizer = make_optimizer(model)
    model.load_state_dict(state['model'])
    optimizer.load_state_dict(state['optimizer'])
    model.to(device)
    return model, optimizer, state['epoch']


RESUME = {'weights': weights_only, 'all': everything}
