import argparse

import torch
from torch.utils.data import DataLoader

from callbacks import Averaging, Coverage, Progress, Spans
from corpus import TAGS, Batch, Buckets, Sentences
from tagger import Tagger


class Trainer:
    def __init__(self, model, loader, device, callbacks):
        self.device = device
        self.model = model.to(device)
        self.loader = loader
        self.callbacks = callbacks
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)
        self.epoch = 0

    def call(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def fit(self, epochs):
        for self.epoch in range(epochs):
            for batch in self.loader:
                batch = batch.to(self.device)
                loss = self.model(batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.call('on_batch', batch, loss)
            self.schedule.step()
            self.call('on_epoch')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--constrained', action='store_true', help='decode only what is well-formed')
    parser.add_argument('--coverage', action='store_true')
    parser.add_argument('--average', action='store_true')
    parser.add_argument('--no-eval', dest='evaluate', action='store_false')
    args = parser.parse_args()

    torch.manual_seed(0)
    train = Sentences(40, seed=1)
    test = Sentences(16, seed=2, vocabulary=train.vocabulary)
    loader = DataLoader(train, batch_sampler=Buckets(train, 8), collate_fn=Batch.collate)
    callbacks = [Progress()]
    if args.coverage:
        callbacks.append(Coverage(train.vocabulary))
    if args.average:
        callbacks.append(Averaging())
    if args.evaluate:
        callbacks.append(Spans(DataLoader(test, batch_size=8, collate_fn=Batch.collate)))
    model = Tagger(len(train.vocabulary), TAGS, constrained=args.constrained)
    Trainer(model, loader, torch.device(args.device), callbacks).fit(2)


if __name__ == '__main__':
    main()
