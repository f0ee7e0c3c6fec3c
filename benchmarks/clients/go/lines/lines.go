// Package lines answers lines of JSON on stdin, as the clients of the tests do.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Line is an action: `tools`, or `call` of a tool with arguments.
type Line struct {
	Action string         `json:"action"`
	Tool   string         `json:"tool"`
	Given  map[string]any `json:"given"`
}

// Answer answers each line with {"result": …} or {"thrown": …} until stdin closes.
func Answer(do func(Line) (any, error)) {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var line Line
		if err := json.Unmarshal(input.Bytes(), &line); err != nil {
			panic(err)
		}
		said := map[string]any{}
		if result, err := do(line); err != nil {
			said["thrown"] = err.Error()
		} else {
			said["result"] = result
		}
		text, err := json.Marshal(said)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}
