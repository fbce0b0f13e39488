from .data import Vocab, make_corpus, batches
from .model import Seq2Seq
from .search import GreedySearch

__all__ = ["Vocab", "make_corpus", "batches", "Seq2Seq", "GreedySearch"]
