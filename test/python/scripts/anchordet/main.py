"""Trains the detector on coloured rectangles."""
import argparse

import torch
from torch.utils.data import DataLoader, Dataset

from det.engine import FocalLoss, evaluate, inverse_frequency, train_one_epoch
from det.model import Detector

COLOURS = torch.eye(3)


class Rectangles(Dataset):
    def __init__(self, count=4, size=32, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.samples = []
        for i in range(count):
            image = 0.1 * torch.rand(3, size, size, generator=g)
            boxes, labels = [], []
            for j in range(2):
                x, y = torch.randint(0, size // 2, (2,), generator=g).tolist()
                w, h = torch.randint(8, size // 2, (2,), generator=g).tolist()
                label = (i + j) % 3
                image[:, y:y + h, x:x + w] = COLOURS[label].view(3, 1, 1)
                boxes.append([x, y, x + w, y + h])
                labels.append(label)
            target = {"boxes": torch.tensor(boxes, dtype=torch.float32), "labels": torch.tensor(labels), "id": i}
            self.samples.append((image, target))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]

    def sizes(self):
        boxes = torch.cat([t["boxes"] for _, t in self.samples])
        return (boxes[:, 2:] - boxes[:, :2]).numpy()


def collate(batch):
    images, targets = zip(*batch)
    return torch.stack(images), list(targets)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--anchors", default="ratios", choices=["ratios", "clustered"])
    parser.add_argument("--nms", default="hard", choices=["hard", "soft"])
    parser.add_argument("--balance", action="store_true", help="weigh the classes by their inverse frequency")
    parser.add_argument("--eval", default="all", choices=["all", "by-class", "none"])
    parser.add_argument("--device", default="cuda:0")
    args = parser.parse_args()
    torch.manual_seed(0)

    dataset = Rectangles()
    device = torch.device(args.device)
    criterion = FocalLoss(class_weights=inverse_frequency(dataset, 3) if args.balance else None)
    sizes = dataset.sizes() if args.anchors == "clustered" else None
    model = Detector(anchors=args.anchors, sizes=sizes, nms=args.nms, criterion=criterion)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(dataset, batch_size=2, shuffle=True, collate_fn=collate)
    for epoch in range(args.epochs):
        for entry in train_one_epoch(model, loader, optimizer, device):
            print(epoch, {k: round(v, 3) for k, v in entry.items()})
    if args.eval != "none":
        print("recall", evaluate(model, loader, device, by_class=args.eval == "by-class"))


if __name__ == "__main__":
    main()
