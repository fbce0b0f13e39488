import argparse

import torch
from torch.utils.data import DataLoader

from acoustic import Recogniser
from corpus import ALPHABET, Collator, build
from decode import BigramDecoder, GreedyDecoder, edit_distance
from features import LogMel, PreEmphasis, SpecMask
from objective import MultiTask


def frontend(args):
    parts = {'mel': LogMel(window=args.window)}
    if args.emphasis:
        parts['emphasis'] = PreEmphasis()
    if args.mask != 'none':
        parts['mask'] = SpecMask(fill=args.mask)
    return parts


def error_rate(model, loader, decoder, device):
    model.eval()
    model.encoder.reset()
    wrong = total = 0
    with torch.no_grad():
        for batch in loader:
            logp, lengths, _ = model(batch['wave'].to(device), batch['samples'])
            for hyp, ref, n in zip(decoder(logp, lengths), batch['text'], batch['text_len']):
                ref = ''.join(ALPHABET[i] for i in ref[:n])
                wrong += edit_distance(hyp, ref)
                total += len(ref)
    return wrong / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--window', default='hann')
    ap.add_argument('--emphasis', action='store_true')
    ap.add_argument('--mask', default='none', choices=['none', 'zero', 'mean'])
    ap.add_argument('--speakers', type=int, default=0)
    ap.add_argument('--balance', action='store_true')
    ap.add_argument('--stateful', action='store_true')
    ap.add_argument('--collate-to-gpu', action='store_true')
    ap.add_argument('--bigram', action='store_true')
    args = ap.parse_args()
    torch.manual_seed(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    data = build(12, max(args.speakers, 1))
    collate = Collator(device if args.collate_to_gpu else None)
    loader = DataLoader(data, batch_size=4, collate_fn=collate, shuffle=True)

    model = Recogniser(frontend(args), 12, 20, len(ALPHABET), args.speakers, args.stateful).to(device)
    criterion = MultiTask(device, [d['speaker'] for d in data], balance=args.balance)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(2):
        model.train()
        total = 0.0
        for batch in loader:
            loss = criterion(model(batch['wave'].to(device), batch['samples']), batch)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f'epoch {epoch}: {total / len(loader):.3f}')
    decoder = BigramDecoder(ALPHABET, [d['text'] for d in data]) if args.bigram else GreedyDecoder(ALPHABET)
    print('CER %.3f' % error_rate(model, loader, decoder, device))


if __name__ == '__main__':
    main()
