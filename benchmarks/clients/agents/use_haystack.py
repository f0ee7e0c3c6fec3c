"""An agent of Haystack."""

from __future__ import annotations

from given import CALLS, MODEL, PATIENCE_S, WISH, given
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from haystack_integrations.tools.mcp import (
    MCPToolset,
    StdioServerInfo,
    StreamableHttpServerInfo,
)

use = given()
if use.url:
    server: object = StreamableHttpServerInfo(url=use.url)
else:
    server = StdioServerInfo(command=use.command, args=list(use.args), env=use.env)
tools = MCPToolset(server, connection_timeout=PATIENCE_S, invocation_timeout=PATIENCE_S)
model = OpenAIChatGenerator(model=MODEL, api_key=Secret.from_token("key"), api_base_url=use.model)
agent = Agent(chat_generator=model, tools=tools, max_agent_steps=CALLS)
agent.warm_up()
print(agent.run(messages=[ChatMessage.from_user(WISH)])["messages"][-1].text)
tools.close()
