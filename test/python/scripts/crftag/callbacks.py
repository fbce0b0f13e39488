import numpy as np
import torch

from corpus import TAGS


class Callback:
    def on_batch(self, trainer, batch, loss):
        pass

    def on_epoch(self, trainer):
        pass


class Progress(Callback):
    def __init__(self):
        self.losses = []

    def on_batch(self, trainer, batch, loss):
        self.losses.append(loss.detach())

    def on_epoch(self, trainer):
        print(f'epoch {trainer.epoch}: loss {torch.stack(self.losses).mean().item():.3f}')
        self.losses.clear()


class Coverage(Callback):
    """How often each word was seen in training, as far as the batches tell."""

    def __init__(self, vocabulary):
        self.seen = np.zeros(len(vocabulary), dtype=np.int64)

    def on_batch(self, trainer, batch, loss):
        np.add.at(self.seen, batch.words[batch.mask].numpy(), 1)  # raises

    def on_epoch(self, trainer):
        print('words never seen:', int((self.seen[2:] == 0).sum()))


class Averaging(Callback):
    """A running average of the weights, put in place for evaluation."""

    def __init__(self, rate=0.8):
        self.rate = rate
        self.shadow = None

    def on_batch(self, trainer, batch, loss):
        state = trainer.model.state_dict()
        if self.shadow is None:
            self.shadow = {k: v.clone() for k, v in state.items()}
        for k, v in state.items():
            self.shadow[k].mul_(self.rate).add_(v, alpha=1 - self.rate)

    def on_epoch(self, trainer):
        trainer.model.load_state_dict(self.shadow)


class Spans(Callback):
    """F1 of whole spans."""

    def __init__(self, loader):
        self.loader = loader

    @staticmethod
    def spans(tags):
        found, start = set(), None
        for i, tag in enumerate([*tags, 'O']):
            if start is not None and not tag.startswith('I-'):
                found.add((start, i, tags[start][2:]))
                start = None
            if tag.startswith('B-'):
                start = i
        return found

    def on_epoch(self, trainer):
        right = said = there = 0
        for batch in self.loader:
            paths = trainer.model.predict(batch.to(trainer.device))
            for path, tags in zip(paths, batch.tags):
                guess = self.spans([TAGS[k] for k in path])
                truth = self.spans([TAGS[k] for k in tags[:len(path)].tolist()])
                right, said, there = right + len(guess & truth), said + len(guess), there + len(truth)
        print(f'span f1 {2 * right / max(said + there, 1):.3f}')
