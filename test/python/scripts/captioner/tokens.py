import torch

COLOURS = ['red', 'green', 'blue']
SIZES = ['small', 'large']
PLACES = ['left', 'right']


class Tokeniser:
    PAD, BOS, EOS = 0, 1, 2

    def __init__(self):
        self.words = ['<pad>', '<bos>', '<eos>', 'a', 'square', 'on', 'the', 'and'] + COLOURS + SIZES + PLACES
        self.ids = {w: i for i, w in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def encode(self, text):
        return torch.tensor([self.BOS, *(self.ids[w] for w in text.split()), self.EOS])

    def decode(self, ids):
        words = []
        for i in ids.tolist():
            if i == self.EOS:
                break
            if i > self.EOS:
                words.append(self.words[i])
        return ' '.join(words)

    def batch(self, texts):
        return torch.nn.utils.rnn.pad_sequence([self.encode(t) for t in texts], batch_first=True,
                                               padding_value=self.PAD)
