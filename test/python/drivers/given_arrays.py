from types import SimpleNamespace

import numpy as np
import torch

import given_arrays as G

D = torch.device("cuda:0")
VOICES = G.Voices(4).to(D)
BOXES = SimpleNamespace(shapes=np.ones((2, 2)), labels=[np.ones((3, 5)), np.ones((1, 5))])

CALLS = {
    "embedding": lambda: G.embedding_of([1.0, 2.0], cuda=True),
    "speak": lambda: VOICES.speak([0.0, 1.0, 2.0, 3.0], use_cuda=True),
    "speak_array": lambda: VOICES.speak(np.ones(4)),
    "sizes": lambda: G.check_sizes(torch.ones(4, device=D), BOXES, 2.0),
    "scores": lambda: G.scores_of(torch.ones(2, 3, device=D)),
    "weights": lambda: G.weights_of([0.5, 1.0], torch.ones(2, 2, device=D)),
}
