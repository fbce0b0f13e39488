"""python main.py [--config cfg.json] [key=value ...]"""
import sys

import torch
import torch.nn as nn

from asr import load_config
from asr.decode import greedy, prefix_beam
from asr.features import Cmvn, LogMel
from asr.model import CtcModel


def make_batch(config, generator):
    samples = torch.randint(160, 240, (config.batch_size,), generator=generator)
    waves = torch.zeros(config.batch_size, int(samples.max()))
    for row, n in enumerate(samples):
        waves[row, :n] = torch.randn(n, generator=generator)
    target_lengths = torch.randint(2, 4, (config.batch_size,), generator=generator)
    targets = torch.randint(1, len(config.alphabet), (int(target_lengths.sum()),), generator=generator)
    return waves, samples, targets, target_lengths


def main(argv):
    path = None
    if argv and argv[0] == "--config":
        path, argv = argv[1], argv[2:]
    config = load_config(path, argv)
    generator = torch.Generator().manual_seed(7)
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")

    extractor = LogMel(config.features)
    if config.features.on_gpu:
        extractor.to(device)
    feature_device = extractor.window.device
    batches = [make_batch(config, generator) for _ in range(config.steps)]

    cmvn = None
    if config.features.cmvn:
        cmvn = Cmvn()
        cmvn.fit([extractor(waves.to(feature_device)).cpu() for waves, *_ in batches])

    model = CtcModel(config).to(device)
    criterion = nn.CTCLoss(zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    history = []
    for waves, samples, targets, target_lengths in batches:
        features = extractor(waves.to(feature_device))
        lengths = extractor.lengths(samples)
        if cmvn is not None:
            features = cmvn(features)
        features = features.to(device)
        log_probs = model(features, lengths.to(device))
        loss = criterion(log_probs.transpose(0, 1), targets.to(device), lengths, target_lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    print("mean loss", torch.stack(history).mean().item())

    model.eval()
    with torch.no_grad():
        log_probs = model(features, lengths.to(device))
    if config.decode == "greedy":
        print(greedy(log_probs, lengths, config.alphabet))
    elif config.decode == "beam":
        for row, n in zip(log_probs.cpu().numpy(), lengths):
            print(prefix_beam(row, n, config.alphabet))


if __name__ == "__main__":
    main(sys.argv[1:])
