package clitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"lockstep.run/lockstep/docs/schemas/outputs"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/output"
)

// validated are the commands of which a test has printed JSON that fits its schema.
var validated sync.Map

// schemas are the compiled ones, by the names of the commands. Here no field is allowed that they do not name.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	all := map[string]*jsonschema.Schema{}
	for name, prints := range cli.Outputs() {
		file := cli.SchemaOf(name, prints)
		raw, err := outputs.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		closeSchema(doc)
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("mem:"+file, doc); err != nil {
			return nil, err
		}
		if all[name], err = compiler.Compile("mem:" + file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
})

// closeSchema forbids further fields, but of objects of Kubernetes, which their definitions describe.
func closeSchema(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		properties, has := schema["properties"].(map[string]any)
		if has && schema["additionalProperties"] == nil && properties["apiVersion"] == nil && schema["type"] == "object" {
			schema["additionalProperties"] = false
		}
		for _, nested := range schema {
			closeSchema(nested)
		}
	case []any:
		for _, nested := range schema {
			closeSchema(nested)
		}
	}
}

// CheckJSON compares what a command line has printed as JSON with the schema.
func CheckJSON(t *testing.T, args []string, printed string) {
	t.Helper()
	if !wantsJSON(args) || printed == "" {
		return
	}
	cmd, _, err := cli.Tree().Find(cli.PackageOperatorNames(args))
	if err != nil || cmd.Hidden {
		return
	}
	name := cli.NameOf(cmd)
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	if all[name] == nil {
		return
	}
	for decoder := json.NewDecoder(strings.NewReader(printed)); ; {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%v prints no JSON: %v: %s", args, err, printed)
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err == nil {
			err = all[name].Validate(value)
		}
		if err != nil {
			t.Errorf("what %v prints does not fit its schema in docs/schemas/outputs (./task generate): %v", args, err)
			return
		}
	}
	validated.Store(name, true)
}

func wantsJSON(args []string) bool {
	wanted := false
	for i, arg := range args {
		switch {
		case arg == "--":
			return wanted
		case strings.HasPrefix(arg, "--query"):
			return false
		case arg == "-ojson", arg == "-o=json", arg == "--output=json", (arg == "-o" || arg == "--output") && i+1 < len(args) && args[i+1] == "json":
			wanted = true
		}
	}
	return wanted
}

// Main runs the tests of a package, and fails where none of them has printed the JSON of one of its commands. Those in elsewhere are
// run on an API server alone.
func Main(m *testing.M, of output.Shapes, elsewhere ...string) int {
	code := m.Run()
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return code
		}
	}
	var missing []string
	for name := range of {
		if _, is := validated.Load(name); !is && !slices.Contains(elsewhere, name) {
			missing = append(missing, name)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "no test has printed the JSON of %s by clitest\n", strings.Join(missing, ", "))
		return max(code, 1)
	}
	return code
}
