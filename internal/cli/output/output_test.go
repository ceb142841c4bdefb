package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// flags parses a command line.
func flags(t *testing.T, args ...string) *Flags {
	t.Helper()
	f := &Flags{}
	cmd := &cobra.Command{}
	f.Add(cmd, Names)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return f
}

type report struct {
	Name  string            `json:"name"`
	Count int64             `json:"count"`
	Data  map[string]string `json:"data,omitempty"`
}

func TestPrint(t *testing.T) {
	t.Parallel()
	evil := report{Name: "a\x1b[31m", Count: 9007199254740993, Data: map[string]string{"k": "on"}}
	list := List{Items: []any{
		map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}},
		map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web\n"}},
	}}
	for _, test := range []struct {
		reason string
		args   []string
		value  any
		want   string
	}{
		{"JSON", []string{"-o", "json"}, evil, "{\n  \"name\": \"a\\u001b[31m\",\n  \"count\": 9007199254740993,\n  \"data\": {\n    \"k\": \"on\"\n  }\n}\n"},
		{"YAML", []string{"-o", "yaml"}, evil, "name: \"a\\e[31m\"\ncount: 9007199254740993\ndata:\n  k: \"on\"\n"},
		{"a query whose result is text is for scripts", []string{"--query", ".name"}, evil, "a\\u001b[31m\n"},
		{"or JSON where that is asked for", []string{"--query", ".name", "-o", "json"}, evil, "\"a\\u001b[31m\"\n"},
		{"numbers keep their digits", []string{"--query", ".count"}, evil, "9007199254740993\n"},
		{"several results", []string{"--query", ".name, .data"}, report{Name: "x", Data: map[string]string{"k": "v"}}, "x\n{\n  \"k\": \"v\"\n}\n"},
		{"several results as YAML", []string{"--query", ".name, .count", "-o", "yaml"}, report{Name: "x"}, "x\n---\n0\n"},
		{"no result", []string{"--query", "empty"}, evil, ""},
		{"what JSON has no number for", []string{"--query", "nan"}, evil, "null\n"},
		{"a list as JSON", []string{"-o", "json", "--query", ".kind"}, list, "\"List\"\n"},
		{"an empty list", []string{"--query", ".items | length"}, List{}, "0\n"},
		{"a list as YAML", []string{"-o", "yaml"}, list, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: |\n    web\n"},
		{"names", []string{"-o", "name"}, list, "deployment.apps/web\nservice/web \n"},
		{"no environment", []string{"--query", "env, $ENV | length"}, evil, "0\n0\n"},
		{"halt ends it", []string{"--query", "1, halt, 2"}, evil, "1\n"},
	} {
		f := flags(t, test.args...)
		if err := f.Check(); err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		var out bytes.Buffer
		if err := f.Print(context.Background(), &out, test.value); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", test.reason, diff)
		}
		if !f.Wanted() {
			t.Errorf("%s: output is not wanted", test.reason)
		}
	}
	if flags(t).Wanted() {
		t.Error("output for programs is wanted without a flag")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-o", "xml"}, `unknown output format "xml": choose json, yaml or name`},
		{[]string{"-o", "name", "--query", "."}, "--query makes JSON or YAML, not -o name"},
		{[]string{"--query", ".["}, "--query is no jq expression"},
		{[]string{"--query", "input"}, "input(s)/0 is not allowed"},
		{[]string{"--query", `import "a" as a; 1`}, "--query is no jq expression that works here"},
		{[]string{"--query", strings.Repeat("1,", 40_000) + "1"}, "--query has 80001 bytes; the limit is 65536"},
	} {
		if err := flags(t, test.args...).Check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q: %v, want %s", test.args, err, test.want)
		}
	}
}

func TestQueryIsBounded(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"last(repeat(1))":        "stopped after 1ms",
		"[range(1e12)] | length": "stopped because it took more than 1048576 bytes of memory",
		`repeat("x" * 1000000)`:  "the results have more than",
		".name | error":          "evil",
		"1 | halt_error":         "halt",
	} {
		f := flags(t, "--query", query)
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(want, "memory"):
			f.program.heap = 1 << 20
		case strings.HasPrefix(want, "stopped"):
			f.program.timeout = time.Millisecond
		}
		var out bytes.Buffer
		err := f.Print(context.Background(), &out, map[string]string{"name": "evil"})
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v, want %s; %d bytes of output", query, err, want, out.Len())
		}
	}
	ended, end := context.WithCancel(context.Background())
	end()
	f := flags(t, "--query", "last(range(100000))")
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	if err := f.Print(ended, &bytes.Buffer{}, json.RawMessage("1")); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt does not end the query: %v", err)
	}
}
