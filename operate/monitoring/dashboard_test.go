package monitoring

import (
	"bytes"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The dashboard in config matches the code, and Grafana's schema knows all of it.
func TestDashboard(t *testing.T) {
	t.Parallel()
	const path = "../../config/monitoring/dashboard.json"
	want, err := dashboardJSON()
	if err != nil {
		t.Fatal(err)
	}

	if os.Getenv("LOCKSTEP_UPDATE") != "" {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: LOCKSTEP_UPDATE=1 writes it again", path)
	}
	if problem := refusal(got); problem != "" {
		t.Errorf("the schema of Grafana refuses it: %s", problem)
	}
	if refusal(bytes.Replace(got, []byte(`"graphTooltip"`), []byte(`"graphTooltips"`), 1)) == "" {
		t.Error("a field that Grafana does not know is not noticed")
	}
}

// refusal returns the unknown or missing fields of a dashboard by Grafana's schema.
func refusal(content []byte) string {
	// The returned type is not nil even if there is no error.
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(content); err != nil { //nolint:staticcheck // as the dashboard itself
		return err.Error()
	}
	return ""
}
