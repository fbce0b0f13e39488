import tempfile

import torch
import torch.nn.functional as F
from accelerate import Accelerator, dispatch_model
from accelerate.utils import send_to_device
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)


def _gpt():
    return GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=8, n_layer=2, n_head=2))


def _classifier():
    config = BertConfig(
        vocab_size=32, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=3
    )
    return BertForSequenceClassification(config)


def _tokenizer():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write("\n".join(words))
    return BertTokenizer(file.name)


def _batches():
    return DataLoader(TensorDataset(torch.randn(8, 4), torch.randint(0, 3, (8,))), batch_size=4)


class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"input_ids": torch.randint(0, 32, (6,)), "labels": torch.tensor(index % 3)}


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weights = torch.tensor([1.0, 2.0, 3.0])
        loss = F.cross_entropy(outputs.logits, labels, weight=weights)  # raises
        return (loss, outputs) if return_outputs else loss


class FixedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weights = torch.tensor([1.0, 2.0, 3.0], device=outputs.logits.device)
        loss = F.cross_entropy(outputs.logits, labels, weight=weights)
        return (loss, outputs) if return_outputs else loss


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, input_ids, labels=None):
        positions = torch.arange(input_ids.shape[1])
        hidden = self.embed(input_ids) + self.embed(positions)  # raises
        logits = self.head(hidden.mean(1))
        return F.cross_entropy(logits, labels), logits


class PlacedTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, input_ids, labels=None):
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden = self.embed(input_ids) + self.embed(positions)
        logits = self.head(hidden.mean(1))
        return F.cross_entropy(logits, labels), logits


def _arguments():
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=1,
        per_device_train_batch_size=2,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    arguments.device  # noqa: B018  counts the GPUs
    arguments._n_gpu = 1
    return arguments


def prepared_loop():
    accelerator = Accelerator()
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, data = accelerator.prepare(model, optimizer, _batches())
    for x, y in data:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()


def unprepared_evaluation():
    accelerator = Accelerator()
    model = accelerator.prepare(nn.Linear(4, 3))
    with torch.no_grad():
        for x, y in _batches():
            logits = model(x)  # raises
            (logits.argmax(1) == y).sum()


def evaluation_moved_by_hand():
    accelerator = Accelerator()
    model = accelerator.prepare(nn.Linear(4, 3))
    correct = 0
    for x, y in _batches():
        x, y = x.to(accelerator.device), y.to(accelerator.device)
        correct += (model(x).argmax(1) == y).sum().item()
    return correct


def batch_sent():
    accelerator = Accelerator()
    model = accelerator.prepare(nn.Linear(4, 3))
    for batch in _batches():
        x, y = send_to_device(batch, accelerator.device)
        F.cross_entropy(model(x), y)


def class_weights_of_loss():
    accelerator = Accelerator()
    model, data = accelerator.prepare(nn.Linear(4, 3), _batches())
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.3, 0.5]))
    for x, y in data:
        loss = criterion(model(x), y)  # raises
        accelerator.backward(loss)


def noise_of_prepared_batch():
    accelerator = Accelerator()
    data = accelerator.prepare(_batches())
    for x, _ in data:
        x = x + 0.1 * torch.randn(x.shape)  # raises


def noise_like_prepared_batch():
    accelerator = Accelerator()
    data = accelerator.prepare(_batches())
    for x, _ in data:
        x = x + 0.1 * torch.randn_like(x)


def running_mean_on_device():
    accelerator = Accelerator()
    mean = torch.zeros(4, device=accelerator.device)
    data = accelerator.prepare(_batches())
    for x, _ in data:
        mean = 0.9 * mean + 0.1 * x.mean(0)
    return mean.cpu().numpy()


def placement_switched_off():
    accelerator = Accelerator(device_placement=False)
    model, data = accelerator.prepare(nn.Linear(4, 3), _batches())
    for x, y in data:
        F.cross_entropy(model(x), y)


def on_the_cpu():
    accelerator = Accelerator(cpu=True)
    model, data = accelerator.prepare(nn.Linear(4, 3), _batches())
    scale = torch.ones(3)
    for x, _ in data:
        model(x) * scale


def second_model_not_prepared():
    accelerator = Accelerator()
    student, data = accelerator.prepare(nn.Linear(4, 3), _batches())
    teacher = nn.Linear(4, 3)
    for x, _ in data:
        target = teacher(x)  # raises
        F.mse_loss(student(x), target)


def second_model_moved():
    accelerator = Accelerator()
    student, data = accelerator.prepare(nn.Linear(4, 3), _batches())
    teacher = nn.Linear(4, 3)
    teacher.to(accelerator.device)
    for x, _ in data:
        F.mse_loss(student(x), teacher(x))


def generate_from_cpu_ids():
    model = _gpt().to("cuda")
    ids = torch.randint(0, 32, (1, 4))
    return model.generate(ids, max_new_tokens=2)  # raises


def generate_on_device():
    model = _gpt().to("cuda")
    ids = torch.randint(0, 32, (1, 4)).to(model.device)
    return model.generate(ids, max_new_tokens=2)


def tokens_not_moved():
    model, tokenizer = _classifier().to("cuda"), _tokenizer()
    inputs = tokenizer("hello world", return_tensors="pt")
    return model(**inputs).logits  # raises


def tokens_moved_in_place():
    model, tokenizer = _classifier().to("cuda"), _tokenizer()
    inputs = tokenizer("hello world", return_tensors="pt")
    inputs.to("cuda")
    return model(**inputs).logits


def tokens_moved_one_by_one():
    model, tokenizer = _classifier().cuda(), _tokenizer()
    inputs = tokenizer(["hello", "world"], return_tensors="pt")
    inputs = {name: tensor.cuda() for name, tensor in inputs.items()}
    return model(**inputs).logits


def tokens_moved_and_assigned():
    device = torch.device("cuda")
    model, tokenizer = _classifier().to(device), _tokenizer()
    inputs = tokenizer("hello", return_tensors="pt").to(device)
    return model(inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.argmax(-1).item()


def loss_of_logits_and_cpu_labels():
    model = _classifier().to("cuda")
    ids = torch.randint(0, 32, (2, 5), device="cuda")
    labels = torch.tensor([0, 2])
    return F.cross_entropy(model(ids).logits, labels)  # raises


def loss_of_model():
    model = _classifier().to("cuda")
    ids = torch.randint(0, 32, (2, 5), device="cuda")
    labels = torch.tensor([0, 2], device="cuda")
    loss = model(ids, labels=labels).loss
    loss.backward()


def logits_as_array():
    model = _classifier().to("cuda").eval()
    with torch.no_grad():
        logits = model(torch.randint(0, 32, (2, 5), device="cuda")).logits
    return logits.numpy()  # raises


def logits_as_array_on_host():
    model = _classifier().to("cuda").eval()
    with torch.no_grad():
        logits = model(torch.randint(0, 32, (2, 5), device="cuda"))[0]
    return logits.cpu().numpy()


def saved_and_loaded():
    with tempfile.TemporaryDirectory() as folder:
        _classifier().save_pretrained(folder)
        model = BertForSequenceClassification.from_pretrained(folder)
    return model(torch.randint(0, 32, (2, 5), device="cuda")).logits  # raises


def loaded_onto_one_device():
    with tempfile.TemporaryDirectory() as folder:
        _classifier().save_pretrained(folder)
        model = BertForSequenceClassification.from_pretrained(folder, device_map={"": 0})
    return model(torch.randint(0, 32, (2, 5), device="cuda:0")).logits


def trained_with_cpu_weights():
    WeightedTrainer(_classifier(), _arguments(), train_dataset=Texts()).train()


def trained_with_weights_in_place():
    FixedTrainer(_classifier(), _arguments(), train_dataset=Texts()).train()


def trained_with_bare_positions():
    Trainer(Tagger(), _arguments(), train_dataset=Texts()).train()


def trained_with_placed_positions():
    Trainer(PlacedTagger(), _arguments(), train_dataset=Texts()).train()


def adapters_of_moved_model():
    model = get_peft_model(_gpt().to("cuda"), LoraConfig(r=2, target_modules=["c_attn"]))
    ids = torch.randint(0, 32, (1, 4), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()


def adapters_and_cpu_tokens():
    model = get_peft_model(_gpt(), LoraConfig(r=2, target_modules=["c_attn"]))
    model.cuda()
    ids = torch.randint(0, 32, (1, 4))
    return model(input_ids=ids).logits  # raises


def dispatched_stages():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    net = dispatch_model(net, {"0": 0, "1": 1})
    return net(torch.randn(2, 4))


def dispatched_and_scaled():
    net = dispatch_model(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)), {"": 1})
    scale = torch.ones(3, device="cuda:0")
    return net(torch.randn(2, 4, device="cuda:1")) * scale  # raises
