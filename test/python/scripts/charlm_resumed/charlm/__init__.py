from .data import Corpus
from .model import CharRNN

__all__ = ["CharRNN", "Corpus"]
