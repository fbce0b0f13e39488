import os

from accelerate import Accelerator
from transformers import AutoModelForCausalLM


def right():
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    place = {"": int(os.environ["LOCAL_RANK"])} if ranks > 1 else "auto"
    return AutoModelForCausalLM.from_pretrained("model", device_map=place)


def wrong():
    if "LOCAL_RANK" in os.environ:
        print("rank", os.environ["LOCAL_RANK"])
    return AutoModelForCausalLM.from_pretrained("model", device_map="sequential")


def main():
    accelerator = Accelerator()
    accelerator.prepare(right())
    accelerator.prepare(wrong())


main()
