#!/usr/bin/env bash
# Trains on all GPUs of this machine.
set -euo pipefail

GPUS_PER_NODE=${GPUS_PER_NODE:-$(nvidia-smi --list-gpus | wc -l)}
DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes 1
"
torchrun $DISTRIBUTED_ARGS finetune.py "$@"
