package manager

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// The schema of the chart's values knows every flag except the ones that the chart sets, the
// agents' flags, and --version.
func TestFlagsOfTheChart(t *testing.T) { // not parallel: the usage is written to os.Stderr
	others := []string{
		"kubeconfig", "namespace", "service-account-name", "leader-elect", "health-probe-bind-address", "cache-dir", "version",
		"class", "target-kubeconfig", "watch-namespace", "watch-all-namespaces",
	}
	content, err := os.ReadFile("../../config/chart/values.schema.json")
	require.NoError(t, err)
	var schema struct {
		Properties struct {
			Manager struct {
				Properties struct {
					Flags struct{ Properties map[string]any }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(content, &schema))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = writer
	usage := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(reader)
		usage <- all
	}()
	_, _ = Parse([]string{"--help"})
	os.Stderr = stderr
	require.NoError(t, writer.Close())
	var flags []string
	for _, found := range regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllSubmatch(<-usage, -1) {
		if name := string(found[1]); !slices.Contains(others, name) {
			flags = append(flags, name)
		}
	}
	slices.Sort(flags)
	require.Equal(t, flags, slices.Sorted(maps.Keys(schema.Properties.Manager.Properties.Flags.Properties)), "the flags and the schema of the chart differ")
}
