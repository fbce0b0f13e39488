import os

import numpy as np
import torch
import torch.nn as nn
from torch import optim

from data_provider.loader import data_provider
from exp.exp_basic import ExpBasic
from utils.tools import EarlyStopping, HorizonWeightedLoss, PinballLoss, adjust_learning_rate, metric


class ExpForecast(ExpBasic):
    def _select_criterion(self):
        if self.args.loss == 'quantile':
            return PinballLoss()
        if self.args.loss == 'weighted':
            return HorizonWeightedLoss(self.args.pred_len).to(self.device)
        return {'mse': nn.MSELoss, 'mae': nn.L1Loss}[self.args.loss]()

    def _process_one_batch(self, batch):
        batch_x, batch_y, batch_x_mark, batch_y_mark = (item.to(self.device) for item in batch)
        dec_zeros = torch.zeros_like(batch_y[:, -self.args.pred_len:, :]).float()
        dec_inp = torch.cat([batch_y[:, :self.args.label_len, :], dec_zeros], dim=1)
        outputs = self.model(batch_x, batch_x_mark, dec_inp, batch_y_mark)
        return outputs, batch_y[:, -self.args.pred_len:, :]

    def vali(self, loader, criterion):
        self.model.eval()
        total = []
        with torch.no_grad():
            for batch in loader:
                pred, true = self._process_one_batch(batch)
                total.append(criterion(pred, true).item())
        self.model.train()
        return np.average(total)

    def train(self, setting):
        _, train_loader = data_provider(self.args, 'train')
        _, vali_loader = data_provider(self.args, 'val')
        path = os.path.join('checkpoints', setting)
        early_stopping = EarlyStopping(patience=self.args.patience)
        model_optim = optim.Adam(self.model.parameters(), lr=self.args.learning_rate)
        criterion = self._select_criterion()
        for epoch in range(self.args.train_epochs):
            train_loss = []
            for batch in train_loader:
                model_optim.zero_grad()
                pred, true = self._process_one_batch(batch)
                loss = criterion(pred, true)
                train_loss.append(loss.item())
                loss.backward()
                model_optim.step()
            vali_loss = self.vali(vali_loader, criterion)
            print('Epoch: {} | Train Loss: {:.4f} Vali Loss: {:.4f}'.format(
                epoch + 1, np.average(train_loss), vali_loss))
            early_stopping(vali_loss, self.model, path)
            if early_stopping.early_stop:
                break
            adjust_learning_rate(model_optim, epoch + 1, self.args)
        self.model.load_state_dict(torch.load(os.path.join(path, 'checkpoint.pth'), map_location='cpu'))
        return self.model

    def test(self, setting):
        test_data, test_loader = data_provider(self.args, 'test')
        self.model.eval()
        preds, trues = [], []
        with torch.no_grad():
            for batch in test_loader:
                pred, true = self._process_one_batch(batch)
                preds.append(pred)
                trues.append(true.detach().cpu())
        preds = torch.cat([p.cpu() for p in preds], dim=0)
        trues = torch.cat(trues, dim=0)
        if self.args.inverse:
            preds, trues = map(test_data.inverse_transform, (preds, trues))
        mae, mse = metric(preds.numpy(), trues.numpy())
        print('mse:{:.4f}, mae:{:.4f}'.format(mse, mae))

    def predict(self, setting):
        pred_data, pred_loader = data_provider(self.args, 'pred')
        checkpoint = torch.load(os.path.join('checkpoints', setting, 'checkpoint.pth'))
        self.model.load_state_dict(checkpoint)
        self.model.eval()
        results = []
        with torch.no_grad():
            for batch in pred_loader:
                pred, _ = self._process_one_batch(batch)
                if self.args.inverse:
                    pred = pred_data.inverse_transform(pred)
                results.append(pred.squeeze(0).numpy())  # raises
        np.save('real_prediction.npy', np.stack(results))
