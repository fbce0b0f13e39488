import os
import tempfile

import torch

from augment import loader
from model import MoCo, Queue
from options import get_options


def save(path, model, optimizer, queue, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "queue": queue.state_dict(), "epoch": epoch}, path)


def load(path, model, optimizer, queue):
    ckpt = torch.load(path, map_location="cpu")
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    queue.load_state_dict(ckpt["queue"])
    return ckpt["epoch"]


def train(model, optimizer, queue, opt, epoch):
    model.train()
    for im_q, im_k, index in loader(opt):
        im_q, im_k = (x.to(opt.device) for x in (im_q, im_k))
        loss = model(im_q, im_k, index.to(opt.device), queue)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")


@torch.no_grad()
def knn_accuracy(model, opt):
    model.eval()
    feats, index = zip(*[(model.encoder_q(q.to(opt.device)), i) for q, _, i in loader(opt)])
    feats, index = torch.cat(feats), torch.cat(index)
    sims = (feats @ feats.t()).fill_diagonal_(-1)
    nearest = index[sims.argmax(1).cpu()]
    return (nearest % 2 == index % 2).float().mean().item()


def build(opt):
    model = MoCo(opt).to(opt.device)
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9)
    return model, optimizer, Queue(opt.dim, opt.queue, opt.device)


def main():
    opt = get_options()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pth")
        model, optimizer, queue = build(opt)
        for epoch in range(opt.epochs):
            train(model, optimizer, queue, opt, epoch)
        save(path, model, optimizer, queue, opt.epochs)
        if opt.resume:
            model, optimizer, queue = build(opt)
            start = load(path, model, optimizer, queue)
            for epoch in range(start, start + 1):
                train(model, optimizer, queue, opt, epoch)
        print("knn", knn_accuracy(model, opt))


if __name__ == "__main__":
    main()
