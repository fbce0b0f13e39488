#!/bin/bash
# usage: bash run.sh
export OMP_NUM_THREADS=1
GPUS=${GPUS:-2}
torchrun --standalone --nproc_per_node=$GPUS finetune.py --lr 1e-2 "$@"
