// A client on mcp-go, with its defaults: mcpgo URL, or mcpgo -- COMMAND… for stdio.
package main

import (
	"context"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"capdex/clients/lines"
)

func connect() (*client.Client, error) {
	if os.Args[1] == "--" {
		return client.NewStdioMCPClient(os.Args[2], os.Environ(), os.Args[3:]...)
	}
	return client.NewStreamableHttpClient(os.Args[1])
}

func main() {
	ctx := context.Background()
	one, err := connect()
	if err != nil {
		panic(err)
	}
	defer one.Close()
	if os.Args[1] != "--" { // a client on stdio is started already
		if err := one.Start(ctx); err != nil {
			panic(err)
		}
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "clients", Version: "1"}
	if _, err := one.Initialize(ctx, hello); err != nil {
		panic(err)
	}
	lines.Answer(func(line lines.Line) (any, error) {
		if line.Action == "call" {
			asked := mcp.CallToolRequest{}
			asked.Params.Name, asked.Params.Arguments = line.Tool, line.Given
			return one.CallTool(ctx, asked)
		}
		found, err := one.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			return nil, err
		}
		return found.Tools, nil
	})
}
