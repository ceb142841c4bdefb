package docs_test

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/itchyny/gojq"
)

// jqVariable makes this program stand in the place of jq, which a machine need not have.
const jqVariable = "LOCKSTEP_STAND_IN_FOR_JQ"

// runJQ knows an expression, and -r before it.
func runJQ(args []string) int {
	raw := args[0] == "-r"
	if err := printJQ(args[len(args)-1], raw); err != nil {
		fmt.Fprintln(os.Stderr, "jq:", err)
		return 1
	}
	return 0
}

func printJQ(expression string, raw bool) error {
	query, err := gojq.Parse(expression)
	if err != nil {
		return err
	}
	var value any
	if err := json.NewDecoder(os.Stdin).Decode(&value); err != nil {
		return err
	}
	for results := query.Run(value); ; {
		result, more := results.Next()
		if !more {
			return nil
		}
		if err, failed := result.(error); failed {
			return err
		}
		if text, is := result.(string); is && raw {
			fmt.Println(text)
			continue
		}
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(result); err != nil {
			return err
		}
	}
}
