import json

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

with open("settings.json") as file:
    settings = json.load(file)


def spread():
    return AutoModelForCausalLM.from_pretrained("model", device_map="auto")


def chosen_by_settings():
    return AutoModelForCausalLM.from_pretrained("model", **settings["model"])


def main():
    for model in (spread(), chosen_by_settings()):
        Trainer(model, TrainingArguments("out")).train()


main()
