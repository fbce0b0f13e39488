#!/bin/bash
# two processes on one machine
set -e
NGPU=${NGPU:-2}
torchrun --standalone --nproc_per_node=$NGPU train.py --epochs 1 "$@"
