package manager

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

// tracedManager takes what follows the revisions.
type tracedManager struct {
	ctrl.Manager
	log   logr.Logger
	added int
}

func (m *tracedManager) GetLogger() logr.Logger { return m.log }

func (m *tracedManager) GetCache() cache.Cache { return nil }

func (m *tracedManager) Add(ctrlmanager.Runnable) error {
	m.added++
	return nil
}

// Variables that a platform puts into all pods, and that cannot be used, stop neither the manager nor an agent, which does not look at
// them.
func TestVariablesOfTraces(t *testing.T) {
	const endpoint, protocol, attributes = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_RESOURCE_ATTRIBUTES"
	for _, test := range []struct {
		reason      string
		environment map[string]string
		agent       bool
		want        string
		follows     int
	}{
		{reason: "there are none"},
		{"a collector", map[string]string{endpoint: "http://otel:4318/base"}, false, `"exporting traces" "collector"="http://otel:4318"`, 1},
		{"no scheme", map[string]string{endpoint: "s3cret@otel:4318"}, false, endpoint + ": want the URL", 0},
		{"another protocol", map[string]string{endpoint: "http://otel:4317", protocol: "grpc"}, false, "want http/protobuf", 0},
		{"no attributes", map[string]string{endpoint: "http://otel:4318", attributes: "team"}, false, attributes, 0},
		{"an agent", map[string]string{endpoint: "otel:4318"}, true, "", 0},
		{"an agent with a collector", map[string]string{endpoint: "http://otel:4318"}, true, "", 0},
	} {
		t.Run(test.reason, func(t *testing.T) {
			for _, variable := range []string{endpoint, protocol, attributes} {
				t.Setenv(variable, test.environment[variable])
			}
			args := []string{"--namespace=n"}
			if test.agent {
				args = append(args, "--target-kubeconfig=k")
			}
			c, err := Parse(args)
			if err != nil {
				t.Fatal(err)
			}
			var logged []string
			mgr := &tracedManager{log: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})}
			end, err := trace(t.Context(), mgr, c)
			if err != nil {
				t.Fatal(err)
			}
			end()
			text := strings.Join(logged, "\n")
			if !strings.Contains(text, test.want) || (text == "") != (test.want == "") || strings.Contains(text, "s3cret") || mgr.added != test.follows {
				t.Errorf("%d followers, logged %s", mgr.added, text)
			}
		})
	}
}
