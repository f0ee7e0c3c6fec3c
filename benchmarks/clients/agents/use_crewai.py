"""A crew of one agent of CrewAI."""

from __future__ import annotations

from crewai import LLM, Agent, Crew, Task
from crewai_tools import MCPServerAdapter
from given import CALLS, MODEL, PATIENCE_S, WISH, given
from mcp import StdioServerParameters

use = given()
if use.url:
    server: object = {"url": use.url, "transport": "streamable-http"}
else:
    server = StdioServerParameters(command=use.command, args=list(use.args), env=use.env)
with MCPServerAdapter(server, connect_timeout=int(PATIENCE_S)) as tools:
    model = LLM(model=f"openai/{MODEL}", base_url=use.model, api_key="key")
    agent = Agent(
        role="Helper", goal=WISH, backstory="Helps.", tools=tools, llm=model, max_iter=CALLS
    )
    task = Task(description=WISH, expected_output="An answer.", agent=agent)
    print(Crew(agents=[agent], tasks=[task]).kickoff().raw)
