def ceil(x):
    return x.cpu()
