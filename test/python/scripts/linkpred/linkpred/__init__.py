from linkpred.graph import Graph, karate_like
from linkpred.layers import GCN, EdgeDecoder
