import torch
import torch.nn.functional as F

from . import decoding


class Trainer:
    def __init__(self, model, settings, callbacks):
        self.settings = settings
        self.device = torch.device(settings.device)
        self.model = model.to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.lr)
        self.callbacks = callbacks

    def notify(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def loss(self, batch):
        logp, lengths = self.model(batch)
        return F.ctc_loss(logp.transpose(0, 1), batch.targets, lengths, batch.target_lengths.to(lengths.device),
                          zero_infinity=True)

    def batches(self, loader):
        for batch in loader:
            yield batch.to(self.device, lengths=self.settings.lengths)

    def fit(self, loader):
        losses = []
        self.notify('on_fit_start')
        for epoch in range(self.settings.epochs):
            self.model.train()
            for batch in self.batches(loader):
                loss = self.loss(batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
                self.notify('on_step_end', losses[-1])
            self.notify('on_epoch_end', epoch)
        self.notify('on_fit_end')
        return {'loss': losses[-1], 'steps': len(losses)}

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        decode = getattr(decoding, self.settings.decode)
        errors = total = 0
        for batch in self.batches(loader):
            logp, lengths = self.model(batch)
            references = batch.targets.cpu().split(batch.target_lengths.tolist())
            for hyp, ref in zip(decode(logp, lengths), references):
                errors += decoding.token_errors(hyp, ref.tolist())
                total += len(ref)
        return errors / total
