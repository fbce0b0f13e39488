import argparse

import torch


def get_settings(argv=None):
    p = argparse.ArgumentParser(description='Energies and forces of small clusters.')
    p.add_argument('--gpu', type=int, default=0, help='-1 for the CPU')
    p.add_argument('--readout', choices=['sum', 'shifted'], default='sum')
    p.add_argument('--restart', choices=['never', 'early', 'late'], default='never',
                   help='when the state is loaded: before the model goes to its device, or after')
    p.add_argument('--relax', type=int, default=0, metavar='STEPS')
    p.add_argument('--epochs', type=int, default=2)
    p.add_argument('--force-weight', type=float, default=5.0)
    s = p.parse_args(argv)
    use = s.gpu >= 0 and torch.cuda.is_available()
    s.device = torch.device(f'cuda:{s.gpu}') if use else torch.device('cpu')
    return s
