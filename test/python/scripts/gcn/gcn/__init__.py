from .layers import GraphConvolution
from .graph import CitationGraph, load_data

__all__ = ["GraphConvolution", "CitationGraph", "load_data"]
