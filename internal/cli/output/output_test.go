package output

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/test/require"
)

// flags parses a command line.
func flags(t *testing.T, args ...string) *Flags {
	t.Helper()
	f := &Flags{}
	cmd := &cobra.Command{}
	f.Add(cmd, Names)
	require.NoError(t, cmd.ParseFlags(args))
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
		{"YAML", []string{"-o", "yaml"}, evil, "count: 9007199254740993\ndata:\n  k: \"on\"\nname: \"a\\e[31m\"\n"},
		{"a list as YAML", []string{"-o", "yaml"}, list, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: |\n    web\n"},
		{"names", []string{"-o", "name"}, list, "deployment.apps/web\nservice/web \n"},
	} {
		f := flags(t, test.args...)
		if err := f.Check(); err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		var out bytes.Buffer
		if err := f.Print(&out, test.value); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
		require.Equal(t, test.want, out.String(), test.reason)
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
	} {
		require.ErrorContains(t, flags(t, test.args...).Check(), test.want, fmt.Sprintf("%.60q", test.args))
	}
}
