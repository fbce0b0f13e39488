import torch

from seg.data import normalize
from seg.metrics import ConfusionMatrix, PixelAccuracy


class Callback:
    def on_batch(self, engine, loss):
        pass

    def on_epoch(self, engine, epoch):
        pass


class LossMeter(Callback):
    def __init__(self):
        self.total, self.count = 0.0, 0

    def on_batch(self, engine, loss):
        self.total += loss.detach()
        self.count += 1

    def on_epoch(self, engine, epoch):
        print(f"epoch {epoch} loss {self.total / self.count:.4f}")


class Validate(Callback):
    def __init__(self, loader, classes, tta=False):
        self.loader, self.classes, self.tta = loader, classes, tta

    @torch.no_grad()
    def on_epoch(self, engine, epoch):
        engine.model.eval()
        matrix, accuracy = ConfusionMatrix(self.classes), PixelAccuracy()
        for image, mask in self.loader:
            mask = mask.to(engine.device)
            predicted = self.predict(engine, image)
            matrix.update(predicted, mask)
            accuracy.update(predicted, mask)
        print("iou", matrix.iou().tolist(), "accuracy", accuracy.value())

    def predict(self, engine, image):
        probs = engine.forward(image).softmax(1)
        if self.tta:
            for dim in (-1, -2):
                flipped = image.flip(dim)
                flipped.to(engine.device)
                probs = probs + engine.infer(flipped).softmax(1).flip(dim)
        return probs.argmax(1)


class Engine:
    def __init__(self, model, criterion, optimizer, device, callbacks=(), late_normalize=False):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer
        self.device, self.callbacks, self.late_normalize = device, callbacks, late_normalize

    def forward(self, image):
        image = image.to(self.device, non_blocking=True)
        if self.late_normalize:
            image = normalize(image)
        return self.model(image)

    def infer(self, image):
        return self.model(image)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            for image, mask in loader:
                loss = self.criterion(self.forward(image), mask.to(self.device))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                for callback in self.callbacks:
                    callback.on_batch(self, loss)
            for callback in self.callbacks:
                callback.on_epoch(self, epoch)
