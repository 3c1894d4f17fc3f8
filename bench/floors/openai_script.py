"""The floor of P3: a prompt by the client library, streamed."""

import asyncio
import os

from openai import AsyncOpenAI


async def main() -> None:
    client = AsyncOpenAI()
    stream = await client.chat.completions.create(
        model=os.environ["AGENT_LSP_MODEL"], messages=[{"role": "user", "content": "hi"}], stream=True
    )
    async for chunk in stream:
        for choice in chunk.choices:
            print(choice.delta.content or "", end="")


asyncio.run(main())
