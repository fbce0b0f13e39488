import torch


@torch.no_grad()
def sample(model, corpus, prompt="(", length=20, temperature=0.8, device="cpu"):
    training = model.training
    model.eval()
    tokens = corpus.encode(prompt).unsqueeze(0).to(device)
    state = model.initial(tokens.size(0))
    text = [*prompt]
    for _ in range(length):
        logits, state = model(tokens, state)
        probabilities = (logits[0, -1] / temperature).softmax(dim=-1)
        tokens = torch.multinomial(probabilities, 1).unsqueeze(0)
        text.append(corpus.decode(tokens.view(-1).tolist()))
    model.train(training)
    return "".join(text)
