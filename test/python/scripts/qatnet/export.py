import json

import torch


def integers(conv):
    quant = conv.weight_quant
    scale = quant.observer.scale().cpu()
    weight = conv.weight.detach().cpu()
    shaped = scale.view(quant.shape) if quant.shape is not None else scale
    return (weight / shaped).round().clamp(-128, 127).to(torch.int8), scale


def export(model, path):
    layers = []
    for name, module in model.named_modules():
        if hasattr(module, 'weight_quant'):
            weight, scale = integers(module)
            layers.append({'name': name, 'weight': weight.numpy().tolist(), 'scale': scale.tolist(),
                           'input': float(module.input_quant.observer.scale())})
    head = {k: v.numpy().tolist() for k, v in model.head.state_dict().items()}  # raises
    with open(path, 'w') as f:
        json.dump({'layers': layers, 'head': head}, f)
    return sum(len(json.dumps(layer['weight'])) for layer in layers)
