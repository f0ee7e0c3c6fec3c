// A client on the Go SDK: gosdk URL, or gosdk -- COMMAND… for stdio.
package main

import (
	"context"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"capdex/clients/lines"
)

func main() {
	ctx := context.Background()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: os.Args[1]}
	if os.Args[1] == "--" {
		transport = &mcp.CommandTransport{Command: exec.Command(os.Args[2], os.Args[3:]...)}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "clients", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	lines.Answer(func(line lines.Line) (any, error) {
		if line.Action == "call" {
			return session.CallTool(ctx, &mcp.CallToolParams{Name: line.Tool, Arguments: line.Given})
		}
		found, err := session.ListTools(ctx, nil)
		if err != nil {
			return nil, err
		}
		return found.Tools, nil
	})
}
