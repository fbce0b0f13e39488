import json
import sys
from pathlib import Path

import torch

from speech.callbacks import CALLBACKS
from speech.corpus import make_loaders
from speech.model import Recognizer
from speech.settings import Settings
from speech.trainer import Trainer


def main(argv):
    settings = Settings.parse(argv)
    torch.manual_seed(settings.seed)
    loaders = make_loaders(settings)
    model = Recognizer(settings)
    callbacks = [CALLBACKS[name](settings) for name in settings.callbacks]
    trainer = Trainer(model, settings, callbacks)
    history = trainer.fit(loaders['train'])
    history['valid'] = trainer.validate(loaders['valid'])
    Path(settings.out).write_text(json.dumps(history))
    print(json.dumps(history))


if __name__ == '__main__':
    main(sys.argv[1:])
