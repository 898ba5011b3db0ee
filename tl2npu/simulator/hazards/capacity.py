def check(runner, device):
    return []
