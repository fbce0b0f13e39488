"""A model whose code lies beside its weights, as GLM-4's does; its parts have the names of that model's."""

from torch import nn
from torch.nn import functional
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


class SmallGlmConfig(PretrainedConfig):
    model_type = "small-glm"

    def __init__(self, vocabulary=128, width=32, heads=2, num_layers=12, **others):
        super().__init__(**others)
        self.vocabulary, self.width, self.heads, self.num_layers = vocabulary, width, heads, num_layers


class SmallGlmBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.input_layernorm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.dense = nn.Linear(width, width)
        self.post_attention_layernorm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, hidden):
        batch, length, width = hidden.shape
        mixed = self.query_key_value(self.input_layernorm(hidden)).view(batch, length, self.heads, -1)
        query, key, value = mixed.transpose(1, 2).chunk(3, dim=-1)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.dense(attended.transpose(1, 2).reshape(batch, length, width))
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class SmallGlmForCausalLM(PreTrainedModel):
    config_class = SmallGlmConfig
    _no_split_modules = ("SmallGlmBlock",)

    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(SmallGlmBlock(config.width, config.heads) for _ in range(config.num_layers))
        self.output_layer = nn.Linear(config.width, config.vocabulary, bias=False)

    def _init_weights(self, module):
        pass  # PyTorch's own

    def get_input_embeddings(self):
        return self.embedding

    def forward(self, input_ids=None, labels=None, **unused):
        hidden = self.embedding(input_ids)
        for layer in self.layers:
            hidden = layer(hidden)
        logits = self.output_layer(hidden)
        loss = None
        if labels is not None:
            shift_logits = logits[:, :-1].contiguous()
            shift_labels = labels[:, 1:].contiguous().to(shift_logits.device)
            loss = nn.CrossEntropyLoss()(shift_logits.view(-1, logits.size(-1)), shift_labels.view(-1))
        return CausalLMOutput(loss=loss, logits=logits)
