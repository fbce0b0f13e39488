import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from model import Captioner
from pictures import Pictures
from search import beam, greedy
from tokens import Tokeniser


def parse():
    p = argparse.ArgumentParser()
    p.add_argument('--first', default='cuda:0')
    p.add_argument('--second', default='cuda:0')
    p.add_argument('--gather', metavar='DEVICE', help='bring both halves to one device for evaluation')
    p.add_argument('--beam', type=int, default=0)
    p.add_argument('--alpha', type=float, default=0.0, help='length penalty')
    p.add_argument('--preview', action='store_true', help='a caption after each epoch')
    p.add_argument('--epochs', type=int, default=2)
    return p.parse_args()


def bleu1(said, truth):
    said, truth = said.split(), truth.split()
    return sum(min(said.count(w), truth.count(w)) for w in set(said)) / max(len(said), 1)


def preview(model, dataset, tokeniser):
    image, text = dataset[0]
    image = image.unsqueeze(0)
    image.to(model.first)
    said = greedy(model, image, tokeniser, 16)
    print('  said:', tokeniser.decode(said[0]), '| true:', text)


def main():
    args = parse()
    torch.manual_seed(0)
    tokeniser = Tokeniser()
    train, test = Pictures(48, tokeniser), Pictures(8, tokeniser, seed=1)
    loader = DataLoader(train, batch_size=12, shuffle=True, collate_fn=train.collate)
    model = Captioner(len(tokeniser)).place(args.first, args.second)
    criterion = nn.CrossEntropyLoss(ignore_index=tokeniser.PAD, label_smoothing=0.05)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    for epoch in range(args.epochs):
        model.train()
        for images, ids, _ in loader:
            images, ids = images.to(model.first), ids.to(model.second)
            logits = model(images, ids[:, :-1])
            loss = criterion(logits.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f'epoch {epoch}: {loss.item():.3f}')
        if args.preview:
            model.eval()
            preview(model, test, tokeniser)

    if args.gather:
        model.place(args.gather, args.gather)
    model.eval()
    total = 0.0
    for images, _, texts in DataLoader(test, batch_size=4, collate_fn=test.collate):
        images = images.to(model.first)
        if args.beam:
            found = beam(model, images, tokeniser, 16, args.beam, args.alpha)
        else:
            found = greedy(model, images, tokeniser, 16)
        total += sum(bleu1(tokeniser.decode(f), t) for f, t in zip(found, texts))
    print(f'bleu-1 {total / len(test):.3f}')


if __name__ == '__main__':
    main()
