"""An agent of Strands."""

from __future__ import annotations

from given import MODEL, PATIENCE_S, WISH, given
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

use = given()
if use.url:
    client = MCPClient(url=use.url, startup_timeout=int(PATIENCE_S))
else:
    stdio = StdioServerParameters(command=use.command, args=list(use.args), env=use.env)
    client = MCPClient(lambda: stdio_client(stdio), startup_timeout=int(PATIENCE_S))
model = OpenAIModel(client_args={"base_url": use.model, "api_key": "key"}, model_id=MODEL)
with client:
    agent = Agent(model=model, tools=client.list_tools_sync(), callback_handler=None)
    print(agent(WISH))
