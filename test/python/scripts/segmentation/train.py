# broken
import argparse
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, random_split

from dataset import Shapes, collate_fn
from evaluate import evaluate
from unet import UNet


def get_args():
    parser = argparse.ArgumentParser(description='Train the UNet on images and target masks')
    parser.add_argument('--epochs', '-e', type=int, default=2)
    parser.add_argument('--batch-size', '-b', dest='batch_size', type=int, default=4)
    parser.add_argument('--lr', type=float, default=1e-3)
    parser.add_argument('--val', type=float, default=25.)
    parser.add_argument('--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--classes', type=int, default=3)
    return parser.parse_args()


def train_model(model, device, args):
    dataset = Shapes(16, args.classes)
    n_val = int(len(dataset) * args.val / 100)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))
    kw = dict(batch_size=args.batch_size, num_workers=0, pin_memory=True, collate_fn=collate_fn)
    train_loader, val_loader = DataLoader(train_set, shuffle=True, **kw), DataLoader(val_set, drop_last=True, **kw)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr, momentum=.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'max', patience=5)
    criterion = nn.CrossEntropyLoss(ignore_index=255)
    step = 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch in train_loader:
            images, true_masks = batch['image'], batch['mask']
            assert images.shape[1] == model.n_channels
            images = images.to(device=device, dtype=torch.float32, memory_format=torch.channels_last)
            true_masks = true_masks.to(device=device, dtype=torch.long)
            pred = model(images)
            loss = criterion(pred, true_masks)
            valid = true_masks.clamp(max=args.classes - 1)
            loss += 1 - (2 * (F.softmax(pred, 1) * F.one_hot(valid, args.classes).permute(0, 3, 1, 2)).sum() / (pred.numel() / args.classes * 2))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.)
            optimizer.step()
            step += 1
        score = evaluate(model, val_loader, device, args.classes)
        scheduler.step(score['mean_iou'])
        print(f'epoch {epoch} {score}')


if __name__ == '__main__':
    args = get_args()
    device = torch.device(args.device)
    model = UNet(3, args.classes).to(memory_format=torch.channels_last)
    model.to(device=device)
    train_model(model, device, args)
