import argparse
import random

import numpy as np
import torch

from exp.exp_forecast import ExpForecast

fix_seed = 2021
random.seed(fix_seed)
torch.manual_seed(fix_seed)
np.random.seed(fix_seed)


def get_parser():
    parser = argparse.ArgumentParser(description='Long sequence time-series forecasting')
    # data
    parser.add_argument('--features', type=int, default=3, help='number of channels')
    parser.add_argument('--seq_len', type=int, default=16)
    parser.add_argument('--label_len', type=int, default=8)
    parser.add_argument('--pred_len', type=int, default=4)
    parser.add_argument('--scaler', type=str, default='standard', choices=['standard', 'minmax', 'none'])
    # model
    parser.add_argument('--model', type=str, default='transformer', choices=['transformer', 'lstm', 'gru', 'dlinear'])
    parser.add_argument('--d_model', type=int, default=16)
    parser.add_argument('--n_heads', type=int, default=2)
    parser.add_argument('--attn', type=str, default='full', choices=['full', 'prob'])
    parser.add_argument('--moving_avg', type=int, default=5)
    # optimisation
    parser.add_argument('--loss', type=str, default='mse', choices=['mse', 'mae', 'quantile', 'weighted'])
    parser.add_argument('--learning_rate', type=float, default=1e-3)
    parser.add_argument('--batch_size', type=int, default=8)
    parser.add_argument('--train_epochs', type=int, default=1)
    parser.add_argument('--patience', type=int, default=2)
    parser.add_argument('--lradj', type=str, default='type1')
    parser.add_argument('--inverse', action='store_true', help='report metrics in the original scale')
    parser.add_argument('--do_predict', action='store_true', help='predict unseen future data')
    # GPU
    parser.add_argument('--use_gpu', type=int, default=1)
    parser.add_argument('--gpu', type=int, default=0)
    parser.add_argument('--use_multi_gpu', action='store_true')
    parser.add_argument('--devices', type=str, default='0,1')
    return parser


def main():
    args = get_parser().parse_args()
    args.use_gpu = bool(torch.cuda.is_available() and args.use_gpu)
    if args.use_gpu and args.use_multi_gpu:
        args.device_ids = [int(id_) for id_ in args.devices.replace(' ', '').split(',')]
        args.gpu = args.device_ids[0]

    exp = ExpForecast(args)
    setting = '{}_sl{}_ll{}_pl{}_dm{}_{}'.format(
        args.model, args.seq_len, args.label_len, args.pred_len, args.d_model, args.loss)
    print('>>>>>>>start training : {}>>>>>>>'.format(setting))
    exp.train(setting)
    print('>>>>>>>testing : {}<<<<<<<'.format(setting))
    exp.test(setting)
    if args.do_predict:
        print('>>>>>>>predicting : {}<<<<<<<'.format(setting))
        exp.predict(setting)
    if args.use_gpu:
        torch.cuda.empty_cache()


if __name__ == '__main__':
    main()
