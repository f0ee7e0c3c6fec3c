"""An agent of smolagents, which connects by mcpadapt."""

from __future__ import annotations

from given import CALLS, MODEL, PATIENCE_S, WISH, given
from mcp import StdioServerParameters
from smolagents import MCPClient, OpenAIModel, ToolCallingAgent

use = given()
if use.url:
    server: object = {"url": use.url, "transport": "streamable-http"}
else:
    server = StdioServerParameters(command=use.command, args=list(use.args), env=use.env)
patience = {"connect_timeout": int(PATIENCE_S)}
with MCPClient(server, adapter_kwargs=patience, structured_output=False) as tools:
    model = OpenAIModel(MODEL, api_base=use.model, api_key="key")
    agent = ToolCallingAgent(tools, model, max_steps=CALLS, verbosity_level=0)
    print(agent.run(WISH))
